package diag

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// mostEvtx is the maximum number of bytes of one channel that are stored.
const mostEvtx = 16 << 20

func eventFilesCollector() Collector {
	return Collector{Name: "event-files", About: "the channels as Event Viewer opens them; not redacted",
		Collect: eventFiles, Timeout: 5 * time.Minute}
}

// eventFiles stores the channels as .evtx files. These files are binary and have checksums, so they
// cannot be redacted and are stored only on request.
func eventFiles(ctx context.Context, t *Task) (err error) {
	channels, err := t.channels(ctx)
	if err != nil {
		return err
	}
	folder, err := t.scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.clear(ctx, folder)) }()
	for _, channel := range channels {
		err = errors.Join(err, t.eventFile(ctx, channel, folder+`\`+safeName(channel.Name())+".evtx"))
	}
	return err
}

// eventFile stores one channel. It halves the number of events until the file has at most mostEvtx
// bytes.
func (t *Task) eventFile(ctx context.Context, channel events.Channel, path string) error {
	for last := of(t.Profile, 1000, 2000, 10000); last > 0; last /= 2 {
		if err := channel.Export(ctx, last, path); err != nil {
			return err
		}
		info, err := t.Node.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
		if err != nil {
			return fmt.Errorf("export event channel %s: %w", channel.Name(), err)
		}
		if info.GetSize() > mostEvtx {
			continue
		}
		record := FileRecord{Path: "events/" + safeName(channel.Name()) + ".evtx",
			From: "event channel " + channel.Name(), Raw: true}
		return t.read(ctx, record, path, 0, mostEvtx)
	}
	return fmt.Errorf("event channel %s: its last event alone takes more than %s", channel.Name(), ui.Size(mostEvtx))
}

// channels returns the channels that the profile includes.
func (t *Task) channels(ctx context.Context) ([]events.Channel, error) {
	reader, err := events.Open(ctx, t.Node.Processes)
	if err != nil {
		return nil, err
	}
	names := events.Defaults()
	if t.Profile == Full {
		names = nil
		for _, group := range events.Groups() {
			names = append(names, group.Name)
		}
	}
	return reader.Channels(names)
}

// leftAfter is the age from which a folder counts as left behind by a lost connection.
const leftAfter = time.Hour

// scratch creates a folder on the node, for the output of programs that can only write to
// files, and returns its path. It also removes the folders that earlier runs left behind.
func (t *Task) scratch(ctx context.Context) (string, error) {
	others, err := t.Node.Files.List(ctx, &agentv1.ListFilesRequest{Path: layout.Scratch})
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return "", fmt.Errorf("list the folders of earlier runs: %w", err)
	}
	for _, other := range others.GetEntries() {
		if time.Since(other.GetModified().AsTime()) > leftAfter {
			if err := t.clear(ctx, other.GetPath()); err != nil {
				return "", err
			}
		}
	}
	folder := layout.Scratch + `\` + rand.Text()
	if _, err := t.Node.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: folder}); err != nil {
		return "", fmt.Errorf("make a folder on the node: %w", err)
	}
	return folder, nil
}

// clearTimeout limits the removal of the scratch folder, which also happens after an
// interrupt.
const clearTimeout = 10 * time.Second

func (t *Task) clear(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
	defer cancel()
	_, err := t.Node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: folder, Recursive: true})
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove %s, which is no longer needed: %w", folder, err)
	}
	return nil
}

// unredacted returns a context whose calls the agent answers without redaction.
func unredacted(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, metadata.MD{})
}
