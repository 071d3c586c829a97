package diag

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/events"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/ui"
)

// mostEvtx of one channel is kept, bytes.
const mostEvtx = 16 << 20

func eventFilesCollector() Collector {
	return Collector{Name: "event-files", About: "the channels as Event Viewer opens them; not redacted", Collect: eventFiles, Timeout: 5 * time.Minute}
}

// eventFiles keeps the channels as .evtx files. Their records are binary, with
// checksums: they cannot be redacted, and are kept only where that was asked for.
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

// eventFile keeps one channel: fewer of its events where they are too large.
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
		record := FileRecord{Path: "events/" + safeName(channel.Name()) + ".evtx", From: "event channel " + channel.Name(), Raw: true}
		return t.read(ctx, record, path, 0, mostEvtx)
	}
	return fmt.Errorf("event channel %s: its last event alone takes more than %s", channel.Name(), ui.Size(mostEvtx))
}

// channels are those that the profile looks at.
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

// leftAfter is the age at which a folder is one that a lost connection has left.
const leftAfter = time.Hour

// scratch is a folder of its own on the node, for what programs there can only
// write into files.
func (t *Task) scratch(ctx context.Context) (string, error) {
	others, err := t.Node.Files.List(ctx, &agentv1.ListFilesRequest{Path: layout.Scratch})
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return "", fmt.Errorf("look for what earlier runs have left: %w", err)
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

// clearTimeout bounds the removal, which is also for a run that was interrupted.
const clearTimeout = 10 * time.Second

func (t *Task) clear(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
	defer cancel()
	_, err := t.Node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: folder, Recursive: true})
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("remove %s, which is of no more use: %w", folder, err)
	}
	return nil
}

// unredacted are calls whose answers stay as they are.
func unredacted(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, metadata.MD{})
}
