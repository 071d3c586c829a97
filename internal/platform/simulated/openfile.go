package simulated

import (
	"fmt"
	"io"
	"io/fs"
	"time"
)

// handle is an open file. While it is open, other processes may read, rename and delete the file,
// but only one process can have the file open for writing: package windows opens files with
// FILE_SHARE_READ|FILE_SHARE_DELETE, and readers with FILE_SHARE_WRITE too ("Creating and Opening Files").
type handle struct {
	p        *process
	file     *file
	path     string
	write    bool
	position int64
	closed   bool
}

func (p *process) open(f *file, path string, write bool) *handle {
	h := &handle{p: p, file: f, path: path, write: write}
	f.handles[h] = struct{}{}
	p.handles[h] = struct{}{}
	return h
}

func (h *handle) release() {
	h.closed = true
	delete(h.file.handles, h)
	delete(h.p.handles, h)
	if h.file.deleting && len(h.file.handles) == 0 {
		h.p.m.disk.forget(h.file)
		h.file.deleting = false
	}
}

func (h *handle) close() error {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	if h.closed {
		return fmt.Errorf("close %s: %w", h.path, fs.ErrClosed)
	}
	h.release()
	return nil
}

// usable returns an error for a closed handle; the caller holds the lock.
func (h *handle) usable() error {
	if h.p.gone {
		return ErrKilled
	}
	if h.closed {
		return fmt.Errorf("%s: %w", h.path, fs.ErrClosed)
	}
	return nil
}

// acl returns the access list of the open file itself, even if another file has that file's name by
// now.
func (h *handle) acl() (string, error) {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	if err := h.usable(); err != nil {
		return "", err
	}
	return h.file.security.String(), nil
}

func (r *readHandle) ACL() (string, error) { return (*handle)(r).acl() }

func (w *writeHandle) ACL() (string, error) { return (*handle)(w).acl() }

type readHandle handle

func (r *readHandle) Read(b []byte) (int, error) {
	h := (*handle)(r)
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	if err := h.usable(); err != nil {
		return 0, err
	}
	n, err := contentReader{h.file.content.chunks, h.file.content.size}.ReadAt(b, h.position)
	h.position += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (r *readHandle) Seek(offset int64, whence int) (int64, error) {
	h := (*handle)(r)
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	if err := h.usable(); err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekCurrent:
		offset += h.position
	case io.SeekEnd:
		offset += h.file.content.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek %s: %w", h.path, fs.ErrInvalid)
	}
	h.position = offset
	return offset, nil
}

func (r *readHandle) Close() error { return (*handle)(r).close() }

type writeHandle handle

func (w *writeHandle) Write(b []byte) (int, error) {
	return w.put(b, func(d *disk, f *file, b []byte) (int, error) { return d.write(f, b) })
}

// WriteAt writes at any position. SFTP needs WriteAt and Truncate; platform.WriteFile has neither.
func (w *writeHandle) WriteAt(b []byte, offset int64) (int, error) {
	return w.put(b, func(d *disk, f *file, b []byte) (int, error) { return d.writeAt(f, b, offset) })
}

// Truncate shortens the file, or extends it with zeros.
func (w *writeHandle) Truncate(size int64) error {
	_, err := w.put(nil, func(d *disk, f *file, _ []byte) (int, error) {
		if size >= f.content.size {
			return d.writeAt(f, nil, size)
		}
		d.truncate(f, size)
		return 0, nil
	})
	return err
}

// put calls the function `change` with the bytes b. If the hook's verdict is an error, put calls it
// with only half of b.
func (w *writeHandle) put(b []byte, change func(*disk, *file, []byte) (int, error)) (n int, err error) {
	h := (*handle)(w)
	op := Operation{Kind: OpWrite, Target: h.path}
	err = h.p.operate(op, func(v Verdict) error {
		h.p.m.mu.Lock()
		defer h.p.m.mu.Unlock()
		if err := h.usable(); err != nil {
			return err
		}
		wanted := b
		if v.Err != nil {
			wanted = b[:len(b)/2]
		}
		var err error
		if n, err = change(h.p.m.disk, h.file, wanted); err == nil {
			err = v.Err
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", h.path, err)
		}
		return nil
	})
	return n, err
}

// Sync is FlushFileBuffers: what was not flushed can be lost ("File Caching").
func (w *writeHandle) Sync() error {
	h := (*handle)(w)
	return h.p.do(OpSync, h.path, func() error {
		if err := h.usable(); err != nil {
			return err
		}
		h.file.synced = h.file.content.size
		return nil
	})
}

func (w *writeHandle) SetModified(t time.Time) error {
	h := (*handle)(w)
	return h.p.do(OpModified, h.path, func() error {
		if err := h.usable(); err != nil {
			return err
		}
		if err := h.p.m.disk.writable(); err != nil {
			return fmt.Errorf("set the time of %s: %w", h.path, err)
		}
		h.file.modified = fileTime(t)
		return nil
	})
}

func (w *writeHandle) Close() error { return (*handle)(w).close() }
