//! Locks of a file that stands behind another one.

/// The part of a `StorageBackend` that its `file` does: the locks of redb, and their end (without it: `locks`).
macro_rules! file_locks {
    () => {
        file_locks!(locks);

        fn close(&self) -> std::io::Result<()> {
            self.file.close()
        }
    };
    (locks) => {
        file_locks!(try_lock_range -> bool);
        file_locks!(try_lock_shared_range -> bool);
        file_locks!(lock_range -> ());
        file_locks!(lock_shared_range -> ());
        file_locks!(unlock_range -> ());
        file_locks!(query_lock_range -> bool);
    };
    ($name:ident -> $answer:ty) => {
        fn $name(
            &self,
            start: std::ops::Bound<u64>,
            end: std::ops::Bound<u64>,
        ) -> Result<$answer, redb::BackendError> {
            self.file.$name(start, end)
        }
    };
}

pub(super) use file_locks;
