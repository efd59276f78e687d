//! The bytes of one connection, encrypted or not, as non-blocking reads and writes.

use super::poller::{Pollers, Watched};
use async_io::Async;
use futures_rustls::server::TlsStream;
use hyper::upgrade::Upgraded;
use rustls::ServerConnection;
use smol_hyper::rt::FuturesIo;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// A socket after its upgrade.
pub(super) struct Wire {
    stream: Watched,
    tls: Option<Box<ServerConnection>>,
}

impl Wire {
    /// The socket of an upgraded connection, and the bytes that came with the upgrade: hyper's buffer goes away here,
    /// not with the connection.
    pub(super) fn taken(upgraded: Upgraded, pollers: &Pollers) -> Option<(Self, Vec<u8>)> {
        // From here on this relay's own workers wait for it.
        let watch = |stream: Async<TcpStream>| pollers.watch(stream.into_inner().ok()?).ok();
        match upgraded.downcast::<FuturesIo<Async<TcpStream>>>() {
            Ok(parts) => {
                let early = parts.read_buf.to_vec();
                Some((Self { stream: watch(parts.io.into_inner())?, tls: None }, early))
            }
            Err(upgraded) => {
                let parts = upgraded.downcast::<FuturesIo<TlsStream<Async<TcpStream>>>>().ok()?;
                let early = parts.read_buf.to_vec();
                let (stream, session) = parts.io.into_inner().into_inner();
                Some((Self { stream: watch(stream)?, tls: Some(Box::new(session)) }, early))
            }
        }
    }

    /// Whether a read that filled less than its buffer took everything there was.
    pub(super) const fn short_is_all(&self) -> bool {
        self.tls.is_none()
    }

    /// Reads what is there; 0 at the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.get_ref().read(into) };
        loop {
            match tls.reader().read(into) {
                // A peer that just stops does not end a message of ours early: the framing tells.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut self.stream.get_ref())? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(|_| ErrorKind::InvalidData)?;
        }
    }

    /// Gives the kernel what of `bytes` it has not taken; `sent` counts. With TLS, also what TLS itself has to say.
    ///
    /// # Errors
    /// `WouldBlock` when the kernel takes no more now.
    pub(super) fn send(&mut self, bytes: &[u8], sent: &mut usize) -> io::Result<()> {
        while *sent < bytes.len() {
            let written = match &mut self.tls {
                None => self.stream.get_ref().write(&bytes[*sent..]),
                Some(_) => self.encrypt(&bytes[*sent..]),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.flush()
    }

    /// Encrypts some of `bytes`, once everything encrypted before has left: so at most one buffer of TLS waits here.
    fn encrypt(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        self.tls.as_mut().map_or(Ok(0), |tls| tls.writer().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.stream.get_ref()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether TLS has something to say of its own.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Waits for input.
    pub(super) async fn readable(&self) {
        self.stream.readable().await;
    }

    /// Lets the other connections have their turn.
    pub(super) async fn others(&self) {
        self.stream.others().await;
    }

    /// Waits for room.
    pub(super) async fn writable(&self) {
        self.stream.writable().await;
    }

    /// Tells a TLS peer that nothing more comes, if the kernel takes that.
    pub(super) fn farewell(&mut self) {
        if let Some(mut tls) = self.tls.take() {
            tls.send_close_notify();
            // The peer has had its WebSocket close already.
            let _ = tls.write_tls(&mut self.stream.get_ref());
        }
    }

    /// Ends our side. What still comes is read as it is: nobody needs it.
    pub(super) fn end(&mut self) {
        self.farewell();
        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
    }
}
