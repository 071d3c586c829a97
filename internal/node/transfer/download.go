package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// mostFiles bounds the files and folders of one download, since the node determines
// their number.
const mostFiles = 1_000_000

// Download copies a file or folder of the node to your machine, by the rules of Upload. The node is
// not trusted: Download writes only at or below the path local, at most as many bytes as the node
// announced, and only if the disk has room for them.
func Download(ctx context.Context, n *node.Node, remote, local string, r ui.Reporter) (CopyResult, error) {
	c := &copying{node: n, reporter: r}
	remote, err := v1alpha1.CleanWindowsPath(remote)
	if err != nil {
		return c.result, fmt.Errorf("copy from the node: %w", err)
	}
	info, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: remote})
	if err != nil {
		return c.result, fmt.Errorf("copy from the node: %w", err)
	}
	local, err = localName(local, remote, info.GetFolder())
	if err != nil {
		return c.result, fmt.Errorf("copy %s: %w", remote, err)
	}
	if info.GetFolder() {
		return c.result, c.downloadFolder(ctx, remote, local)
	}
	return c.result, c.downloadFile(ctx, info, remote, local)
}

// localName returns the path of the copy on your machine by scp's rules: inside the path local if
// that path is a folder or ends in a slash, otherwise the path itself. If the path ends in a slash
// and does not exist, localName makes a folder there. If a file is copied to any other path, the
// parent folder of that path must exist.
func localName(local, remote string, folder bool) (string, error) {
	if local == "" {
		return "", errors.New("the local path is empty: use . for this folder")
	}
	info, err := os.Stat(local)
	switch {
	case err == nil && info.IsDir():
		return joinLocal(local, remote)
	case err == nil && folder:
		return "", fmt.Errorf("%s is a file, and cannot become a folder: name another destination", local)
	case os.IsPathSeparator(local[len(local)-1]):
		if err := os.MkdirAll(local, 0o777); err != nil {
			return "", fmt.Errorf("make the folder for the copy: %w", err)
		}
		return joinLocal(local, remote)
	case folder:
		return local, nil
	}
	parent := filepath.Dir(local)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the local folder %s does not exist: make it, or end the path with a slash", parent)
	}
	return local, nil
}

// joinLocal adds the last name of a remote path to a local folder. The result is always directly in
// that folder: the node chooses the names of its files, but not the folder on your machine.
func joinLocal(folder, remote string) (string, error) {
	name := remote[strings.LastIndexAny(remote, `\/`)+1:]
	if !fitsHere(name) {
		return "", fmt.Errorf("the name %q is not valid for a local file: name the destination", name)
	}
	return filepath.Join(folder, name), nil
}

// fitsHere reports whether a file of the node can keep its name on your machine. It is equally
// strict on every system, since a bundle or a copy may later be copied to Windows, where a:b is a
// stream of the file a, and "a." is the file a.
func fitsHere(name string) bool {
	return name != "" && name != "." && name != ".." && filepath.IsLocal(name) &&
		!strings.ContainsAny(name, `/\:`) && !strings.ContainsFunc(name, unicode.IsControl) &&
		!strings.HasSuffix(name, ".") && !strings.HasSuffix(name, " ")
}

func (c *copying) downloadFolder(ctx context.Context, remote, local string) error {
	if err := os.MkdirAll(local, 0o777); err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	reply, err := c.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: remote})
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	for _, entry := range reply.GetEntries() {
		if c.seen++; c.seen > mostFiles {
			return fmt.Errorf("copy %s: the node lists more than %d files: copy its folders one by one",
				remote, mostFiles)
		}
		to, err := joinLocal(local, entry.GetPath())
		switch {
		case err != nil:
			err = fmt.Errorf("copy %s: %w", remote, err)
		case entry.GetLink():
			c.skip(entry.GetPath(), fs.ModeSymlink)
		case entry.GetFolder():
			err = c.downloadFolder(ctx, entry.GetPath(), to)
		default:
			err = c.downloadFile(ctx, entry, entry.GetPath(), to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) downloadFile(ctx context.Context, info *agentv1.FileInfo, remote, local string) error {
	hash, err := c.node.Files.Hash(ctx, &agentv1.HashRequest{Path: remote})
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	if !blobs.IsSHA256(hash.GetSha256()) || hash.GetSize() < 0 {
		return fmt.Errorf("copy %s: the node did not report its SHA-256 and size", remote)
	}
	c.result.Files++
	c.result.SizeBytes += hash.GetSize()
	if same(ctx, local, hash) {
		c.result.Unchanged++
		return nil
	}
	if there, err := os.Lstat(local); err == nil && there.IsDir() {
		return fmt.Errorf("copy %s: %s is a local folder: name another destination", remote, local)
	}
	d := &download{copying: c, info: info, remote: remote, local: local, hash: hash}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	return nil
}

func same(ctx context.Context, path string, hash *agentv1.HashReply) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != hash.GetSize() {
		return false
	}
	sum, err := localfile.Hash(ctx, path)
	return err == nil && sum == hash.GetSha256()
}

// download is one file on its way to your machine.
type download struct {
	*copying
	info          *agentv1.FileInfo
	remote, local string
	hash          *agentv1.HashReply
	part          *os.File // the incomplete copy, in the same folder as the path local
	own           bool     // no later copy may continue this part, so run removes it after a failure
}

// run downloads the file's bytes into a part, verifies the part, and renames the part to the path
// local. If run fails and the part remains, the next copy continues the part.
func (d *download) run(ctx context.Context) (err error) {
	if err := d.openPart(); err != nil {
		return err
	}
	defer func() {
		d.part.Close() // an error of closing does not matter: the content is verified
		if err != nil && d.own {
			_ = os.Remove(d.part.Name()) // the first error matters more
		}
	}()
	if err := d.receive(ctx); err != nil {
		return err
	}
	if t := d.info.GetModified(); t.IsValid() {
		if err := os.Chtimes(d.part.Name(), t.AsTime(), t.AsTime()); err != nil {
			return err
		}
	}
	// A new file stays accessible to its owner alone, since it may hold secrets of the node. A file
	// that replaces another one gets the permissions of the replaced file.
	if there, err := os.Stat(d.local); err == nil {
		if err := d.part.Chmod(there.Mode().Perm()); err != nil {
			return err
		}
	}
	if d.own { // Windows renames an open file only if localfile.Claim has opened the file
		if err := d.part.Close(); err != nil {
			return err
		}
	}
	return os.Rename(d.part.Name(), d.local)
}

// openPart opens the part for this copy alone. While another copy of the same file uses the part,
// openPart makes a part with another name for this copy.
func (d *download) openPart() (err error) {
	path := Part(layout.Staged(d.local, d.hash.GetSha256()))
	d.part, err = localfile.Claim(path)
	if errors.Is(err, localfile.ErrClaimed) {
		d.reporter.Debug("%s: another copy of this file is running", d.local)
		d.own = true
		d.part, err = os.CreateTemp(filepath.Dir(d.local), filepath.Base(path)+"-*"+Part(""))
	}
	return err
}

// receive downloads the bytes that the part lacks, and verifies the whole part. If the file on the
// node has changed meanwhile, receive returns a *RemoteChangedError.
func (d *download) receive(ctx context.Context) error {
	have, err := d.part.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > d.hash.GetSize() {
		have = 0
	}
	if err := d.from(ctx, have); err != nil {
		return err
	}
	right, err := d.verify(ctx)
	if err == nil && !right && have > 0 { // the part was of another file: download once more from the start
		if err := d.from(ctx, 0); err != nil {
			return err
		}
		right, err = d.verify(ctx)
	}
	if err == nil && !right {
		d.own = true // no copy may continue the part
		err = &RemoteChangedError{Path: d.remote}
	}
	return err
}

func (d *download) verify(ctx context.Context) (bool, error) {
	info, err := d.part.Stat()
	if err != nil || info.Size() != d.hash.GetSize() {
		return false, err
	}
	sum, err := localfile.Hash(ctx, d.part.Name())
	if err != nil {
		return false, fmt.Errorf("verify %s: %w", d.part.Name(), err)
	}
	return sum == d.hash.GetSha256(), nil
}

// RemoteChangedError reports a file of the node that changed while it was copied.
type RemoteChangedError struct{ Path string }

func (e *RemoteChangedError) Error() string {
	return fmt.Sprintf("%s changed on the node while it was copied: copy it again, or make a copy on the node first",
		e.Path)
}

// from writes the node's bytes of the file into the part, from offset up to the size that the node
// announced. So a log that grows is copied as it was when its hash was computed.
func (d *download) from(ctx context.Context, offset int64) error {
	if err := d.part.Truncate(offset); err != nil {
		return err
	}
	if _, err := d.part.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	left := d.hash.GetSize() - offset
	if err := localfile.Fits(filepath.Dir(d.local), left); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.node.Files.Read(ctx, &agentv1.ReadRequest{Path: d.remote, Offset: offset})
	if err != nil {
		return err
	}
	progress := d.reporter.Transfer(d.remote[strings.LastIndexAny(d.remote, `\/`)+1:], d.hash.GetSize())
	defer progress.End()
	progress.Add(offset)
	for left > 0 {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data := reply.GetData()
		data = data[:min(left, int64(len(data)))]
		if _, err := d.part.Write(data); err != nil {
			return err
		}
		left -= int64(len(data))
		d.result.SentBytes += int64(len(data))
		progress.Add(int64(len(data)))
	}
	return nil
}
