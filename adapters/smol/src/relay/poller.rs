//! Readiness of sockets for the relay's workers: one epoll a worker, each socket in one of them, told once and for
//! every change.
//!
//! The runtime's own reactor takes a system call to arm a socket before each wait and a thread that wakes the workers;
//! with a thousand envelopes a second that is a good part of what an envelope costs. Here a worker that has nothing to
//! run waits for its sockets itself, and runs what they woke.

use crate::clock;
use async_executor::Executor;
use futures_lite::future;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Sockets told of at once.
const EVENTS: usize = 256;
/// Between two glances of the tasks themselves.
const GLANCE_MICROS: u64 = 1_000;
/// The key of the wake-up.
const WAKE: u64 = 0;
/// A timeout that does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The pollers of all workers.
#[derive(Clone, Debug)]
pub(super) struct Pollers {
    all: Arc<[Arc<Poller>]>,
    next: Arc<AtomicUsize>,
    /// When a task glanced last.
    glanced_micros: Arc<AtomicU64>,
}

/// One worker's.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// Somebody woke the worker since it last ran.
    woken: AtomicBool,
    /// The worker waits, or is about to.
    waiting: AtomicBool,
    sockets: Mutex<BTreeMap<u64, Arc<Ready>>>,
    next: AtomicU64,
}

/// What is known of one socket.
#[derive(Debug, Default)]
struct Ready(Mutex<[Side; 2]>);

#[derive(Debug, Default)]
struct Side {
    ready: bool,
    /// It ended: ready from now on. The end may have come with the last bytes, which are told of once.
    ended: bool,
    waker: Option<Waker>,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Ready {
    fn sides(&self) -> MutexGuard<'_, [Side; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the socket may have become ready since the last time this said so.
    async fn wait(&self, side: usize) {
        poll_fn(|cx| {
            let side = &mut self.sides()[side];
            if std::mem::take(&mut side.ready) || side.ended {
                return Poll::Ready(());
            }
            match &mut side.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
        .await;
    }
}

impl Pollers {
    /// Pollers for this many workers.
    ///
    /// # Errors
    /// When the system has no room for them.
    pub(super) fn new(workers: usize) -> io::Result<Self> {
        let all =
            (0..workers.max(1)).map(|_| Poller::new().map(Arc::new)).collect::<io::Result<Arc<[_]>>>()?;
        Ok(Self { all, next: Arc::default(), glanced_micros: Arc::default() })
    }

    /// The poller of each worker.
    pub(super) fn each(&self) -> impl Iterator<Item = Arc<Poller>> + '_ {
        self.all.iter().map(Arc::clone)
    }

    /// Watches a non-blocking socket.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub(super) fn watch(&self, stream: TcpStream) -> io::Result<Watched> {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.all.len();
        let poller = Arc::clone(&self.all[at]);
        let key = poller.next.fetch_add(1, Ordering::Relaxed);
        let ready = Arc::<Ready>::default();
        poller.sockets().insert(key, Arc::clone(&ready));
        let watched = Watched { stream, ready, poller, pollers: self.clone(), key };
        let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&watched.poller.epoll, &watched.stream, EventData::new_u64(key), all)?;
        Ok(watched)
    }

    /// Wakes what is ready now, for a task that has worked for long: a worker asks for its sockets only after some
    /// hundred turns of tasks, or when there is none to run.
    fn glance(&self) {
        let now = clock::mono_micros();
        let last = self.glanced_micros.load(Ordering::Relaxed);
        let relaxed = Ordering::Relaxed;
        if now.saturating_sub(last) >= GLANCE_MICROS
            && self.glanced_micros.compare_exchange(last, now, relaxed, relaxed).is_ok()
        {
            let (mut events, mut wakers) = (Vec::with_capacity(EVENTS), Vec::new());
            for poller in self.all.iter() {
                poller.ask(Some(&NOW), &mut events, &mut wakers);
                if events.iter().any(|event| event.data.u64() == WAKE) {
                    // Told once: it was for the worker, which may be waiting for it.
                    poller.rouse();
                }
                wakers.drain(..).for_each(Waker::wake);
            }
        }
    }
}

/// A watched socket.
#[derive(Debug)]
pub(super) struct Watched {
    stream: TcpStream,
    ready: Arc<Ready>,
    poller: Arc<Poller>,
    pollers: Pollers,
    key: u64,
}

impl Watched {
    pub(super) const fn get_ref(&self) -> &TcpStream {
        &self.stream
    }

    /// Waits until there may be something to read: more than what was there when a read last found nothing, or filled
    /// less than its buffer.
    pub(super) async fn readable(&self) {
        self.ready.wait(READ).await;
    }

    /// Lets the other sockets have their turn, those included that became ready meanwhile.
    pub(super) async fn others(&self) {
        self.pollers.glance();
        future::yield_now().await;
    }

    /// Waits until there may be room, after a write that found none.
    pub(super) async fn writable(&self) {
        self.ready.wait(WRITE).await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Closing the socket takes it out as well.
        let _ = epoll::delete(&self.poller.epoll, &self.stream);
        self.poller.sockets().remove(&self.key);
    }
}

impl Poller {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            epoll,
            wake,
            woken: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            sockets: Mutex::default(),
            next: AtomicU64::new(WAKE + 1),
        })
    }

    fn sockets(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Ready>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an executor's tasks on this thread until `end` is there, and waits for sockets in between.
    pub(super) fn run<T>(self: &Arc<Self>, executor: &Executor<'static>, end: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let mut run = pin!(executor.run(end));
        let mut events = Vec::with_capacity(EVENTS);
        let mut wakers = Vec::with_capacity(EVENTS);
        loop {
            self.woken.store(false, Ordering::SeqCst);
            if let Poll::Ready(done) = run.as_mut().poll(&mut context) {
                return done;
            }
            self.wait(&mut events, &mut wakers);
            wakers.drain(..).for_each(Waker::wake);
        }
    }

    /// Waits until a socket is ready or somebody wakes this; not at all when somebody has already.
    fn wait(&self, events: &mut Vec<epoll::Event>, wakers: &mut Vec<Waker>) {
        self.waiting.store(true, Ordering::SeqCst);
        let timeout = self.woken.load(Ordering::SeqCst).then_some(&NOW);
        self.ask(timeout, events, wakers);
        self.waiting.store(false, Ordering::SeqCst);
    }

    /// Ends the worker's wait, or its next one.
    fn rouse(&self) {
        // Told of every change, so it is never read; it is full after 2^64 of them.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Asks for sockets that are ready; their wakers.
    fn ask(&self, timeout: Option<&Timespec>, events: &mut Vec<epoll::Event>, wakers: &mut Vec<Waker>) {
        events.clear();
        // Interrupted, at worst: asked again at once.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout);
        if events.is_empty() {
            return;
        }
        let sockets = self.sockets();
        for event in events.iter() {
            let Some(ready) = sockets.get(&event.data.u64()) else { continue };
            let flags = event.flags;
            let mut sides = ready.sides();
            let broken = EventFlags::HUP | EventFlags::ERR;
            let kinds =
                [(READ, EventFlags::IN, broken | EventFlags::RDHUP), (WRITE, EventFlags::OUT, broken)];
            for (side, ready, ended) in kinds {
                if flags.intersects(ready | ended) {
                    sides[side].ready = true;
                    sides[side].ended |= flags.intersects(ended);
                    wakers.extend(sides[side].waker.take());
                }
            }
        }
    }
}

impl Wake for Poller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) && self.waiting.load(Ordering::SeqCst) {
            self.rouse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let two = listener.accept().unwrap().0;
        two.set_nonblocking(true).unwrap();
        (one, two)
    }

    fn work(
        pollers: &Pollers,
        executor: &Arc<Executor<'static>>,
    ) -> (async_channel::Sender<()>, Vec<std::thread::JoinHandle<()>>) {
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let threads = pollers.each().map(|poller| {
            let (executor, stopped) = (Arc::clone(executor), stopped.clone());
            std::thread::spawn(move || {
                let _ = poller.run(&executor, stopped.recv());
            })
        });
        (stop, threads.collect())
    }

    #[test]
    fn echoes_however_bytes_come_and_stops_when_told() {
        let (pollers, executor) = (Pollers::new(2).unwrap(), Arc::new(Executor::new()));
        let (stop, threads) = work(&pollers, &executor);
        let mut ours = Vec::new();
        for _ in 0..20 {
            let (client, server) = pair();
            let watched = pollers.watch(server).unwrap();
            executor
                .spawn(async move {
                    let mut buffer = [0; 700];
                    loop {
                        let count = match watched.get_ref().read(&mut buffer) {
                            Ok(0) => return,
                            Ok(count) => count,
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                                watched.readable().await;
                                continue;
                            }
                            Err(error) => panic!("{error}"),
                        };
                        let mut left = &buffer[..count];
                        while !left.is_empty() {
                            match watched.get_ref().write(left) {
                                Ok(count) => left = &left[count..],
                                Err(_) => watched.writable().await,
                            }
                        }
                    }
                })
                .detach();
            ours.push(client);
        }
        let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        std::thread::scope(|scope| {
            for client in &ours {
                let mut sending = client.try_clone().unwrap();
                let large = &large;
                scope.spawn(move || {
                    sending.write_all(b"x").unwrap();
                    std::thread::sleep(Duration::from_millis(5));
                    sending.write_all(large).unwrap();
                    sending.shutdown(std::net::Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    let (mut client, mut got) = (client, Vec::new());
                    client.read_to_end(&mut got).unwrap();
                    assert!(got[0] == b'x' && got[1..] == *large);
                });
            }
        });
        assert!(pollers.each().all(|poller| poller.sockets().is_empty()), "those that ended are forgotten");
        let start = Instant::now();
        stop.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_task_woken_from_elsewhere_runs() {
        let (pollers, executor) = (Pollers::new(2).unwrap(), Arc::new(Executor::new()));
        let (stop, threads) = work(&pollers, &executor);
        let (ask, asked) = async_channel::bounded(1);
        let (tell, told) = async_channel::bounded(1);
        executor
            .spawn(async move {
                while let Ok(n) = asked.recv().await {
                    tell.send(n + 1).await.unwrap();
                }
            })
            .detach();
        for n in 0..5_000 {
            ask.send_blocking(n).unwrap();
            assert_eq!(told.recv_blocking().unwrap(), n + 1);
        }
        stop.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// One worker, and a task that never waits: a socket that becomes ready meanwhile is served all the same.
    #[test]
    fn a_task_that_works_for_long_leaves_sockets_their_turn() {
        const ROUNDS: usize = 100;
        let (pollers, executor) = (Pollers::new(1).unwrap(), Arc::new(Executor::new()));
        let (stop, threads) = work(&pollers, &executor);
        let (mut client, server) = pair();
        let (watched, (_far, near)) = (pollers.watch(server).unwrap(), pair());
        let busy = pollers.watch(near).unwrap();
        executor
            .spawn(async move {
                let mut byte = [0];
                loop {
                    match watched.get_ref().read(&mut byte) {
                        Ok(0) => return,
                        Ok(_) => drop(watched.get_ref().write(&byte)),
                        Err(_) => watched.readable().await,
                    }
                }
            })
            .detach();
        let (tell, done) = async_channel::bounded(1);
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        executor
            .spawn(async move {
                for _ in 0..ROUNDS {
                    std::thread::sleep(Duration::from_millis(3));
                    busy.others().await;
                }
                tell.send(()).await.unwrap();
            })
            .detach();
        let mut served = 0;
        while done.is_empty() {
            client.write_all(b"x").unwrap();
            client.read_exact(&mut [0]).unwrap();
            served += 1;
        }
        assert!(served > ROUNDS / 10, "{served}");
        drop(client);
        stop.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
