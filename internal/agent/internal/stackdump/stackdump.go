// Package stackdump makes containerd write its goroutines, and reads and removes the file.
//
// containerd on Windows waits for the event Global\stackdump-PID, and then writes to containerd.PID.stacks.log in its
// temporary folder (containerd/containerd, cmd/containerd/command/main_windows.go and main.go, 1.3 … 2.4). Ordinary users can
// make files in C:\Windows\Temp. So the agent makes the file itself before it sets the event, new and with an access list for
// administrators and SYSTEM: containerd then writes into this file, and no other account can put a file or a link in its place.
//
// An event cannot be taken back: a containerd that is slower than the caller creates its file later, whatever has become of the
// agent's. So once the event is set, a file stays until containerd has written it, even if the caller goes away.
package stackdump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// restricted is the access list of the file: full access for administrators and SYSTEM.
	restricted = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)"
	// MostBytes is the largest part of a dump that is read.
	MostBytes = 16 << 20
	// writeLimit is how long the agent waits until containerd has written the file, also for a caller that has gone.
	writeLimit   = 10 * time.Second
	pollInterval = 50 * time.Millisecond
	// foreignAge is the age from which a file of this name is not that of another swdt, which takes writeLimit.
	foreignAge = 30 * time.Second
)

// LateError reports that containerd has not begun to write its goroutines in time. It may do so later.
type LateError struct {
	Left []string // the paths of the files that stay for it
}

func (e *LateError) Error() string {
	return fmt.Sprintf("containerd has written nothing within %s. It may do so later, so %s stays, which only administrators can open; "+
		"the next dump removes it", writeLimit, strings.Join(e.Left, " and "))
}

// Unwrap makes the error one of a deadline.
func (e *LateError) Unwrap() error { return context.DeadlineExceeded }

// Read makes the containerd with this PID write its goroutines, calls take with the text in parts, and removes the file. cut
// reports whether the dump has more than MostBytes. If the process has no such event, the error is fault.ErrNotExist. If the name
// of the file is taken by another account, it is fault.ErrPermission, and nothing is written, read or removed. If the process
// does not begin to write in time, it is a *LateError; if it does not end, a *wait.Error. Once the event is set, the end of ctx
// does not end Read before the process has written, or writeLimit is over.
func Read(ctx context.Context, p *platform.Platform, pid uint32, now time.Time, take func([]byte) error) (cut bool, err error) {
	d := &dump{files: p.Files, name: fmt.Sprintf("containerd.%d.stacks.log", pid), now: now}
	defer func() { err = joined(err, d.remove(context.WithoutCancel(ctx))) }()
	if err := d.prepare(folders(ctx, p, pid)); err != nil {
		return false, err
	}
	err = p.Processes.Signal(fmt.Sprintf(`Global\stackdump-%d`, pid))
	d.signalled = err == nil || d.signalled && !errors.Is(err, fault.ErrNotExist)
	if err != nil {
		return false, err
	}
	written, err := d.await(context.WithoutCancel(ctx))
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, err
	}
	return d.read(written, take)
}

// joined returns the error of a dump and that of the removal of its files. That files stay says already that the time is over.
func joined(err, removal error) error {
	var late *LateError
	var over *wait.Error
	if errors.As(removal, &late) && errors.As(err, &over) {
		return removal
	}
	return errors.Join(err, removal)
}

// folders returns the folders in one of which the process writes. A service of SYSTEM uses C:\Windows\SystemTemp, if Windows has
// it and its Go knows it (GetTempPath2, Go 1.21); others use the folder that their environment names.
func folders(ctx context.Context, p *platform.Platform, pid uint32) []string {
	variables := map[string]string{}
	all, _ := p.Processes.Environment(ctx, pid) // without it, Windows' own folders remain
	for _, pair := range all {
		name, value, _ := strings.Cut(pair, "=")
		variables[strings.ToUpper(name)] = value
	}
	root := cmp.Or(variables["SYSTEMROOT"], `C:\Windows`)
	var found []string
	for _, folder := range []string{root + `\SystemTemp`, variables["TMP"], variables["TEMP"], variables["USERPROFILE"], root + `\Temp`} {
		folder = strings.TrimRight(folder, `\/`)
		info, err := p.Files.Stat(folder)
		if folder == "" || err != nil || !info.Folder || info.Link ||
			slices.ContainsFunc(found, func(f string) bool { return strings.EqualFold(f, folder) }) {
			continue
		}
		found = append(found, folder)
	}
	return found
}

// dump is one dump, whose file has the same name in several folders: it is not known which one the process uses.
type dump struct {
	files platform.Files
	name  string
	now   time.Time
	made  []platform.FileInfo // the files that the agent made

	signalled bool // by this dump or by an earlier one: containerd may write at any time
}

// prepare makes the file in each of the folders.
func (d *dump) prepare(folders []string) error {
	if len(folders) == 0 {
		return fmt.Errorf("find the temporary folder of containerd: %w", fault.ErrNotExist)
	}
	for _, folder := range folders {
		path := folder + `\` + d.name
		err := d.make(path)
		if errors.Is(err, fault.ErrExist) {
			err = d.replace(path)
		}
		if err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
	}
	return nil
}

func (d *dump) make(path string) error {
	file, err := d.files.NewFile(path, restricted)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return d.adopt(path)
}

// adopt makes an empty file one of the dump.
func (d *dump) adopt(path string) error {
	info, err := d.files.Stat(path)
	if err == nil {
		d.made = append(d.made, info)
	}
	return err
}

// replace makes the file in place of an earlier dump: one that an administrator asked for, or that a killed agent left.
// containerd would overwrite it. An empty one, for which an earlier event may still be answered, is used as it is: there is no
// moment without it.
func (d *dump) replace(path string) error {
	info, err := d.files.Stat(path)
	if err != nil {
		return err
	}
	sddl, err := d.files.ACL(path)
	if err != nil {
		return err
	}
	list, err := access.Parse(sddl)
	switch {
	case err != nil:
		return err
	case info.Link, info.Folder, d.files.KeepsACL() && !access.Trusted(list.Owner):
		return fmt.Errorf("%w: another account has made it; look at it, and remove it", fault.ErrPermission)
	case d.now.Sub(info.Modified) < foreignAge:
		return fmt.Errorf("%w: another dump is under way; try again in %s", fault.ErrInUse, foreignAge)
	case info.Size == 0 && list.Exclusive():
		d.signalled = true
		return d.adopt(path)
	}
	if err := d.files.Remove(path); err != nil {
		return err
	}
	return d.make(path)
}

// await returns the file into which the process has written everything. Go's os.Create does not let others remove a file while
// it is open, so the file is complete when it can be removed and does not grow.
func (d *dump) await(ctx context.Context) (written platform.FileInfo, err error) {
	err = wait.Condition{Name: "containerd to write its goroutines", Interval: pollInterval, Limit: writeLimit,
		Look: func(context.Context) error {
			for _, made := range d.made {
				info, err := d.files.Stat(made.Path)
				switch {
				case err != nil:
					return wait.Stop(err)
				case info.Link || info.ID != made.ID:
					return wait.Stop(fmt.Errorf("%s was replaced: %w", made.Path, fault.ErrPermission))
				case info.Size == 0:
				case info.Size != written.Size || info.ID != written.ID || d.files.CheckHeld(made.Path) != nil:
					written = info
					return errors.New("it is still being written")
				default:
					return nil
				}
			}
			return errors.New("the file is empty")
		}}.Wait(ctx)
	return written, err
}

// read passes on the content of a file that the agent made.
func (d *dump) read(written platform.FileInfo, take func([]byte) error) (cut bool, err error) {
	file, err := d.files.Open(written.Path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	const part = 256 << 10
	for left := MostBytes; left > 0; {
		chunk := make([]byte, min(part, left)) // a new one each time: gRPC may keep it
		n, err := io.ReadFull(file, chunk)
		if n > 0 {
			if err := take(chunk[:n]); err != nil {
				return false, err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		}
		left -= n
	}
	return written.Size > MostBytes, nil
}

// remove removes the files that the agent made, and no others, unless containerd has still to choose the one that it writes. A
// virus scanner may hold one for a moment.
func (d *dump) remove(ctx context.Context) error {
	var failed []error
	if left := d.awaited(); len(left) > 0 {
		return &LateError{left}
	}
	for _, made := range d.made {
		info, err := d.files.Stat(made.Path)
		switch {
		case errors.Is(err, fault.ErrNotExist):
		case err != nil:
			failed = append(failed, err)
		case info.Link || info.ID != made.ID:
			failed = append(failed, fmt.Errorf("%s was replaced, and stays: %w", made.Path, fault.ErrPermission))
		default:
			failed = append(failed, wait.Retry(ctx, func() error { return d.files.Remove(made.Path) }))
		}
	}
	return errors.Join(failed...)
}

// awaited returns the paths of the files in one of which containerd may write later; none if it writes already, or was not asked.
func (d *dump) awaited() (empty []string) {
	for _, made := range d.made {
		info, err := d.files.Stat(made.Path)
		switch {
		case !d.signalled || err == nil && info.ID == made.ID && info.Size > 0:
			return nil
		case err == nil && info.ID == made.ID && !info.Link:
			empty = append(empty, made.Path)
		}
	}
	return empty
}
