package simulated

import (
	"fmt"
	"io/fs"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// fileLock is the lock that a file represents: package windows locks a byte beyond the content, and opens the file without
// FILE_SHARE_DELETE. Windows releases the lock with the process (LockFileEx, remarks).
type fileLock struct {
	p    *process
	file *file
}

func (v filesView) Lock(path string, holder []byte) (platform.Unlocker, error) {
	var l *fileLock
	err := v.p.do(OpLock, path, func() (err error) {
		if l, err = v.p.lock(path, holder); err != nil {
			return fmt.Errorf("lock %s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (p *process) lock(path string, holder []byte) (*fileLock, error) {
	d := p.m.disk
	if f, err := d.find(path, true); err == nil && f.lock != nil {
		return nil, &fault.LockedError{Path: path, Holder: f.bytes()}
	}
	f, err := d.openForWriting(p.account, path, platform.CreateTruncate)
	if err != nil {
		return nil, err
	}
	if _, err := d.write(f, holder); err != nil {
		return nil, err
	}
	f.synced = f.content.size
	f.lock = &fileLock{p: p, file: f}
	p.locks[f.lock] = struct{}{}
	return f.lock, nil
}

func (l *fileLock) release() {
	delete(l.p.locks, l)
	l.file.lock = nil
}

func (l *fileLock) Unlock() error {
	path := ""
	l.p.m.mu.Lock()
	path = l.file.path()
	l.p.m.mu.Unlock()
	return l.p.do(OpUnlock, path, func() error {
		if l.file.lock != l {
			return fmt.Errorf("unlock %s: not locked: %w", path, fs.ErrClosed)
		}
		l.p.m.disk.truncate(l.file, 0) // the file must not name the former holder
		l.release()
		return nil
	})
}
