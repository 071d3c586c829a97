package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// mostConfiguration is the maximum number of bytes of a file that are stored; larger
	// files are not configuration.
	mostConfiguration = 1 << 20
	// mostFiles is the maximum number of files of a pattern or a list that are read.
	mostFiles = 400
)

// configurations returns the patterns of the configuration files to store; a * matches within a
// name. To add a pattern, add an entry. No pattern matches a file that contains only a key.
func configurations() []string {
	return []string{
		`C:\Program Files\containerd\config.toml`,
		`C:\Program Files\containerd\cni\conf\*.conf*`,
		`C:\etc\cni\net.d\*.conf*`,
		`C:\k\cni\config\*.conf*`,
		`C:\var\lib\kubelet\config.yaml`,
		`C:\var\lib\kubelet\kubeadm-flags.env`,
		`C:\var\lib\kubelet\instance-config.yaml`,
		`C:\etc\kubernetes\*.conf`,
		`C:\etc\kubernetes\manifests\*.yaml`,
		`C:\k\*.ps1`,
		`C:\k\*.conf`,
		`C:\k\*.yaml`,
		`C:\k\antrea\etc\*.conf*`,
		`C:\k\antrea\etc\*.yaml`,
		`C:\CalicoWindows\config.ps1`,
		`C:\CalicoWindows\*.conf*`,
		`C:\ProgramData\docker\config\daemon.json`,
		`C:\ProgramData\ssh\sshd_config`,
		`C:\ProgramData\swdt\join.json`,
		`C:\Users\*\.crictl\crictl.yaml`,
		`C:\Windows\System32\drivers\etc\hosts`,
	}
}

// configuration stores the files that match the patterns of configurations. It also stores the
// configuration files that the command lines of kubelet, containerd and kube-proxy name.
func configuration(ctx context.Context, t *Task) error {
	patterns := configurations()
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		service, err := t.service(ctx, name)
		if err != nil {
			return err
		}
		patterns = append(patterns, namedFiles(service.GetProgram().GetCommandLine())...)
	}
	seen := map[string]bool{}
	var failed []error
	for _, pattern := range patterns {
		found, err := logs.Find(ctx, t.Node, []string{"file:" + pattern})
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, file := range found[:min(len(found), mostFiles)] {
			if key := strings.ToLower(file.Path); file.Exists && !seen[key] {
				seen[key] = true
				record := FileRecord{Path: t.place("files", file.Path), From: file.Path}
				failed = append(failed, t.read(ctx, record, file.Path, 0, mostConfiguration))
			}
		}
	}
	return errors.Join(failed...)
}

// namedFiles returns the configuration files that a command line names.
func namedFiles(line string) (paths []string) {
	args := commandline.Split(line)
	for i, arg := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		value = strings.ReplaceAll(value, "/", `\`)
		if strings.HasPrefix(value, `\`) && !strings.HasPrefix(value, `\\`) {
			value = "C:" + value
		}
		switch name {
		case "config", "kubeconfig", "bootstrap-kubeconfig":
			if logs.CheckName("file:"+value) == nil {
				paths = append(paths, value)
			}
		case "config-dir": // kubelet's drop-ins
			if value = strings.TrimSuffix(value, `\`) + `\*.conf`; logs.CheckName("file:"+value) == nil {
				paths = append(paths, value)
			}
		}
	}
	return paths
}

// read stores a part of a file of the node. The part begins at offset, and has at most the given
// number of bytes.
func (t *Task) read(ctx context.Context, record FileRecord, path string, offset, most int64) error {
	if record.Raw {
		ctx = unredacted(ctx)
	}
	if offset > 0 {
		record.Cut = "the first " + ui.Size(offset) + " and the line that they end in"
	}
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
	case <-ctx.Done():
		return fmt.Errorf("read %s: %w", record.From, ctx.Err())
	}
	return t.write(record, most, func(w io.Writer) error {
		reading, cancel := context.WithCancel(ctx)
		defer cancel() // ends the stream of a log that grows faster than swdt reads it
		stream, err := t.Node.Files.Read(reading, &agentv1.ReadRequest{Path: path, Offset: offset})
		if err != nil {
			return fmt.Errorf("read %s: %w", record.From, err)
		}
		// reads at least one byte more than the maximum, to detect a longer file
		for left := most; left >= 0; {
			reply, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", record.From, err)
			}
			left -= int64(len(reply.GetData()))
			if _, err := w.Write(reply.GetData()); err != nil {
				return err
			}
		}
		return nil
	})
}

type logRow struct {
	Source   string     `json:"source"`
	File     string     `json:"file"`
	Size     int64      `json:"sizeBytes"`
	Modified *time.Time `json:"modified,omitempty"`
	// path in the bundle; empty: only this row is stored
	Kept string `json:"kept,omitempty"`
}

// tails stores the ends of the logs of the known sources, and, in the profiles network and full,
// the ends of the logs of all pods.
func tails(ctx context.Context, t *Task) error {
	found, err := logs.List(ctx, t.Node)
	if err != nil {
		return err
	}
	var rows []logRow
	var failed []error
	for _, log := range found {
		row := logRow{Source: log.Source, File: log.Path, Size: log.Size}
		if log.Exists {
			row.Modified = &log.Modified
		}
		if log.Exists && (t.Profile > Quick || !strings.HasPrefix(log.Source, "pod/")) && len(rows) < mostFiles {
			row.Kept = t.place("logs", log.Path)
			failed = append(failed, t.tail(ctx, row, of[int64](t.Profile, 512<<10, 1<<20, 8<<20)))
		}
		rows = append(rows, row)
	}
	err = t.Table("logs", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			line := []string{r.Source, "-", "not yet", r.File}
			if r.Modified != nil {
				line[1], line[2] = ui.Size(r.Size), r.Modified.UTC().Format(time.RFC3339)
			}
			lines = append(lines, line)
		}
		return ui.Table(w, []string{"SOURCE", "SIZE", "LAST WRITE", "FILE"}, lines)
	})
	return errors.Join(append(failed, err)...)
}

func (t *Task) tail(ctx context.Context, row logRow, most int64) error {
	const grows = 64 << 10 // the size by which a log may grow while it is read
	record := FileRecord{Path: row.Kept, From: row.File, Log: true}
	return t.read(ctx, record, row.File, max(0, row.Size-most), most+grows)
}

// windowsLogs stores the logs of Windows' own setup.
func windowsLogs(ctx context.Context, t *Task) error {
	var failed []error
	for _, pattern := range []string{`C:\Windows\Logs\NetSetup\*`, `C:\Windows\Logs\DISM\*.log`,
		`C:\Windows\Logs\CBS\*.log`} {
		found, err := logs.Find(ctx, t.Node, []string{"file:" + pattern})
		if err != nil {
			failed = append(failed, err)
		}
		for _, file := range found[:min(len(found), mostFiles)] {
			if strings.EqualFold(path.Ext(file.Path), ".cab") || !file.Exists {
				continue
			}
			failed = append(failed,
				t.tail(ctx, logRow{File: file.Path, Size: file.Size, Kept: t.place("logs", file.Path)}, 4<<20))
		}
	}
	return errors.Join(failed...)
}
