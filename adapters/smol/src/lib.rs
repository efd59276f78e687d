//! The world around the machines: sockets, clocks, entropy and the store, on smol.
//!
//! Nothing here decides anything the protocol speaks of. [`driver`] feeds events into a machine and holds its
//! effects until what it wrote is durable in the [`store`]; [`relay`] and [`daemon`] turn sockets into events and
//! effects into bytes; [`client`] is the other end of the daemon's sockets;
//! [`capture`] keeps what a machine is given and says.

pub mod capture;
pub mod client;
pub mod clock;
pub mod daemon;
pub mod driver;
pub mod entropy;
pub mod files;
mod guard;
pub mod handle;
pub mod home;
pub mod interrupt;
pub mod log;
mod outbox;
pub mod probe;
pub mod process;
pub mod relay;
pub mod store;
pub mod supervise;
mod tls;
