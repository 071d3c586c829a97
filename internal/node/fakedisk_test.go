package node_test

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
)

// disk is drive C: in memory, in the form that SFTP shows.
type disk struct {
	mem    sftp.Handlers
	faults diskFaults
	test   bool // the test's own access has no faults
	ages   map[string]time.Duration
}

type diskFaults struct {
	full       bool   // writes fail as on a full disk
	denied     bool   // no file or folder can be created
	broken     bool   // writes fail without a known reason
	corrupts   bool   // the written bytes differ from those sent
	shared     bool   // every user may write in all folders
	quarantine string // the method after which the agent is gone: Put or Rename
}

func newDisk(f diskFaults) *disk { return &disk{mem: sftp.InMemHandler(), faults: f} }

func (d *disk) handlers() sftp.Handlers {
	return sftp.Handlers{FileGet: d, FilePut: d, FileCmd: d, FileList: d}
}

func (d *disk) client(t *testing.T) *sftp.Client {
	t.Helper()
	ours, theirs := net.Pipe()
	srv := sftp.NewRequestServer(theirs, (&disk{mem: d.mem, test: true}).handlers())
	served := make(chan struct{})
	go func() { srv.Serve(); close(served) }()
	c, err := sftp.NewClientPipe(ours, ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); srv.Close(); <-served })
	return c
}

func (d *disk) Fileread(r *sftp.Request) (io.ReaderAt, error) { return d.mem.FileGet.Fileread(r) }

func (d *disk) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	list, err := d.mem.FileList.Filelist(r)
	if err != nil {
		return nil, err
	}
	return agedLister{list, d.ages, d.faults.shared}, nil
}

// age makes a file at the root look as if it was written this long ago.
func (d *disk) age(name string, by time.Duration) {
	if d.ages == nil {
		d.ages = map[string]time.Duration{}
	}
	d.ages[strings.TrimPrefix(name, "/")] = by
}

type agedLister struct {
	sftp.ListerAt
	ages   map[string]time.Duration
	shared bool
}

func (l agedLister) ListAt(into []os.FileInfo, offset int64) (int, error) {
	n, err := l.ListerAt.ListAt(into, offset)
	for i, info := range into[:n] {
		if by, aged := l.ages[info.Name()]; aged {
			into[i] = agedInfo{info, by}
		}
		if l.shared && info.IsDir() {
			into[i] = sharedInfo{info}
		}
	}
	return n, err
}

type agedInfo struct {
	os.FileInfo
	by time.Duration
}

func (i agedInfo) ModTime() time.Time { return i.FileInfo.ModTime().Add(-i.by) }

// sharedInfo is a folder whose access list lets every user write, as Windows' sshd shows it.
type sharedInfo struct{ os.FileInfo }

func (i sharedInfo) Mode() os.FileMode { return i.FileInfo.Mode() | 0o002 }

func (d *disk) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	return d.mem.FileList.(sftp.LstatFileLister).Lstat(r)
}

func (d *disk) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	if d.faults.denied {
		return nil, sftp.ErrSSHFxPermissionDenied
	}
	w, err := d.mem.FilePut.Filewrite(r)
	if err != nil {
		return nil, err
	}
	switch {
	case d.faults.full, d.faults.broken:
		return failingWriter{}, nil
	case d.faults.corrupts:
		return corruptingWriter{w}, nil
	case d.faults.quarantine == "Put":
		return closingWriter{w, func() { d.mem.FileCmd.Filecmd(sftp.NewRequest("Remove", r.Filepath)) }}, nil
	}
	return w, nil
}

func (d *disk) Filecmd(r *sftp.Request) error {
	// Windows has no rename over an existing file.
	if r.Method == "Rename" {
		if _, err := d.mem.FileList.Filelist(sftp.NewRequest("Stat", r.Target)); err == nil {
			return errors.New("exists")
		}
	}
	err := d.mem.FileCmd.Filecmd(r)
	if err == nil && r.Method == d.faults.quarantine {
		d.mem.FileCmd.Filecmd(sftp.NewRequest("Remove", r.Target))
	}
	return err
}

func (d *disk) StatVFS(*sftp.Request) (*sftp.StatVFS, error) {
	free := uint64(1 << 20)
	if d.faults.full {
		free = 1
	}
	return &sftp.StatVFS{Frsize: 1024, Bsize: 1024, Bfree: free, Bavail: free}, nil
}

type failingWriter struct{}

func (failingWriter) WriteAt([]byte, int64) (int, error) { return 0, os.ErrInvalid }

type corruptingWriter struct{ io.WriterAt }

func (c corruptingWriter) WriteAt(p []byte, offset int64) (int, error) {
	if offset == 0 {
		p = slices.Clone(p)
		p[10] ^= 1
	}
	return c.WriterAt.WriteAt(p, offset)
}

type closingWriter struct {
	io.WriterAt
	then func()
}

func (c closingWriter) Close() error { c.then(); return nil }
