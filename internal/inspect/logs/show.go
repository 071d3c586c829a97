package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/servicelog"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// rescanInterval is the time between two searches for new logs, such as the log of a
// restarted container or of a service that had not logged before.
const rescanInterval = 2 * time.Second

// maxLogs is the maximum number of logs of a node that are read at the same time, since each log
// needs its own call. maxFiles is the maximum number of followed files whose positions are kept.
const (
	maxLogs  = 4096
	maxFiles = 4096
)

// TooManyError reports a node with more than maxLogs logs.
type TooManyError struct{ Found int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("read the logs: the node lists %d, and %d are read at once; name fewer of them, such as "+
		"one pod", e.Found, maxLogs)
}

// NothingError reports sources without a log on the node.
type NothingError struct {
	Sources []string
	Wanted  []Found // files that the sources name and that do not exist yet
}

func (e *NothingError) Error() string {
	text := "no log of " + strings.Join(e.Sources, ", ") + " exists"
	if len(e.Wanted) > 0 {
		text += "; " + paths(e.Wanted) + " does not exist yet"
	}
	return text + "; `swdt logs list` lists the existing logs, -f waits for new ones"
}

// show reads one node's logs and sends them to the merger.
type show struct {
	node     *node.Node
	options  Options
	merger   *Merger
	reporter ui.Reporter

	running sync.WaitGroup
	mutex   sync.Mutex
	errs    []error
	read    map[string]bool // the logs that are read, by path in lower case
	owners  map[fileID]string
	places  map[fileID]*positions
	several atomic.Bool // reports whether there are several logs, or none yet
}

// Show sends a node's logs to the merger. It closes the given Input, which stands for the node until
// the node's logs are known. With Follow, Show returns when ctx ends.
func Show(ctx context.Context, n *node.Node, o Options, m *Merger, in *Input, reporter ui.Reporter) error {
	s := &show{
		node: n, options: o, merger: m, reporter: reporter,
		read: map[string]bool{}, owners: map[fileID]string{}, places: map[fileID]*positions{},
	}
	names := o.Sources
	if len(names) == 0 {
		names = byDefault()
	}
	err := s.reconnecting(ctx, func(ctx context.Context) error { return s.begin(ctx, names) })
	in.Close(ctx)
	if err != nil {
		return err
	}
	if o.Follow {
		s.rescan(ctx, names)
	}
	s.running.Wait()
	return errors.Join(s.errs...)
}

// begin checks that the named logs exist, and starts to read all logs.
func (s *show) begin(ctx context.Context, names []string) error {
	files, named := split(names)
	found, none, err := find(ctx, s.node, files, !s.options.Since.IsZero())
	if err != nil {
		return err
	}
	channels, err := s.channels(ctx, named)
	if err != nil {
		return err
	}
	wanted := s.reached(found)
	if !s.options.Follow {
		wanted = existing(wanted)
	}
	if len(wanted) == 0 && len(named) == 0 && (!s.options.Follow || len(s.options.Sources) > 0) {
		return &NothingError{Sources: names, Wanted: found}
	}
	if len(wanted) > maxLogs {
		return &TooManyError{Found: len(wanted)}
	}
	s.options.warnOf(none, s.reporter)
	s.several.Store(len(wanted)+len(channels) != 1)
	for _, file := range wanted {
		o := s.options
		o.Follow = o.Follow && !file.Rotated
		s.file(ctx, file.File, o, nil)
	}
	for _, channel := range channels {
		s.channel(ctx, channel)
	}
	return nil
}

// reached returns the files without those rotated parts that were written before Since. It warns of parts that cannot be
// read since they are compressed.
func (s *show) reached(all []Found) []Found {
	return slices.DeleteFunc(slices.Clone(all), func(f Found) bool {
		switch {
		case !f.Rotated:
			return false
		case f.Modified.Before(s.options.Since):
			return true
		case servicelog.IsCompressed(f.Path):
			s.reporter.Warn("%s is compressed, so its lines are missing; copy it with `swdt cp` and unpack it", f.Path)
			return true
		}
		return false
	})
}

// warnOf prints a warning for named sources without a log, if other sources have logs.
func (o Options) warnOf(none []*NothingError, reporter ui.Reporter) {
	if o.Follow || len(o.Sources) == 0 {
		return
	}
	for _, nothing := range none {
		reporter.Warn("%v", nothing)
	}
}

func split(names []string) (files, channels []string) {
	for _, name := range names {
		if channel, ok := IsEvent(name); ok {
			channels = append(channels, channel)
		} else {
			files = append(files, name)
		}
	}
	return files, channels
}

// file starts to read one file. The logs are read in parallel.
func (s *show) file(ctx context.Context, file File, o Options, known func() []*agentv1.TailPlace) {
	s.read[strings.ToLower(file.Path)] = true
	in := s.merger.Add(ctx)
	s.running.Go(func() {
		defer in.Close(ctx)
		t := &tail{lines: newLines(file, o, o.last()), in: in, reporter: s.reporter, known: known,
			owns: func(p *agentv1.TailPlace) bool { return s.owns(file, p) }}
		t.lines.verbatim = s.verbatim(o)
		s.failed(ctx, s.reconnecting(ctx, func(ctx context.Context) error { return t.read(ctx, s.node.Files) }))
	})
}

// fileID identifies a file independently of its name.
type fileID struct{ volume, index, high uint64 }

// owns reports whether a followed file is read under this path and no other. After a
// rotation, a pattern also matches the new name of a file whose lines were already read
// under its old name.
func (s *show) owns(file File, at *agentv1.TailPlace) bool {
	id := fileID{at.GetVolume(), at.GetIndex(), at.GetHigh()}
	if !s.options.Follow || id.index|id.high == 0 { // not every file system numbers its files
		return true
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.owners) >= maxFiles { // if a node reports ever more files, some lines are printed twice
		clear(s.owners)
		clear(s.places)
	}
	if _, known := s.owners[id]; !known {
		s.owners[id] = file.Path
	}
	if s.owners[id] != file.Path {
		return false
	}
	if s.places[id] == nil {
		s.places[id] = &positions{}
	}
	s.places[id].add(at)
	return true
}

// positions are the positions up to which one followed file was read.
type positions struct {
	last   *agentv1.TailPlace
	before *agentv1.TailPlace // the last position before the file was truncated; nil: the file was not truncated
}

func (p *positions) add(at *agentv1.TailPlace) {
	if p.last != nil && at.GetOffset() < p.last.GetOffset() {
		p.before = p.last
	}
	p.last = at
}

// followed returns the positions up to which logs were read. A new file that begins like one
// of these logs is a copy of the log. A rotation makes such a copy before it truncates the
// log.
func (s *show) followed() (all []*agentv1.TailPlace) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, places := range s.places {
		all = append(all, places.last)
		if places.before != nil {
			all = append(all, places.before)
		}
	}
	return all
}

// verbatim returns a function that reports whether lines can be passed on unparsed, because
// only their text is wanted and there is no other log to merge with. It returns nil if the
// options always require parsing.
func (s *show) verbatim(o Options) func() bool {
	if !o.Verbatim || o.picks() {
		return nil
	}
	return func() bool { return !s.several.Load() }
}

// reconnecting calls the given function. If logs are followed, it calls the function again each
// time after the connection was lost.
func (s *show) reconnecting(ctx context.Context, work func(context.Context) error) error {
	if !s.options.Follow {
		return work(ctx)
	}
	return s.node.Reconnecting(ctx, s.reporter, work)
}

// failed stores the error of one log. Reading the other logs continues.
func (s *show) failed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	ofNode := ofConnection(err)
	if s.options.Follow && !ofNode && !errors.Is(err, errEnded) {
		s.reporter.Warn("%v; this log is no longer followed", err) // warn now, since other logs may continue for hours
	}
	if ofNode && slices.ContainsFunc(s.errs, ofConnection) {
		return // the connection is lost for all logs of the node at once
	}
	s.errs = append(s.errs, err)
}

// ofConnection reports whether an error is about the connection to the node, which all logs of the
// node share.
func ofConnection(err error) bool {
	var lost *node.LostError
	var unreachable *node.UnreachableError
	return errors.As(err, &lost) || errors.As(err, &unreachable)
}

// rescan finds logs that were created after the start, and reads them from their beginning.
func (s *show) rescan(ctx context.Context, names []string) {
	files, _ := split(names)
	fromStart := s.options
	fromStart.Tail = -1
	ticker := time.NewTicker(rescanInterval)
	defer ticker.Stop()
	for len(files) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var found []Found
		err := s.reconnecting(ctx, func(ctx context.Context) (err error) {
			found, err = Find(ctx, s.node, files)
			return err
		})
		if err != nil {
			s.failed(ctx, err)
			return
		}
		for _, file := range existing(found) {
			if !s.read[strings.ToLower(file.Path)] {
				if len(s.read) >= maxLogs {
					s.failed(ctx, &TooManyError{Found: len(s.read) + 1})
					return
				}
				s.reporter.Info("new log %s", file.Path)
				s.several.Store(true)
				s.file(ctx, file.File, fromStart, s.followed)
			}
		}
	}
}

// channels returns the event channels of the node that the names select.
func (s *show) channels(ctx context.Context, names []string) ([]events.Channel, error) {
	if len(names) == 0 {
		return nil, nil
	}
	reader, err := events.Open(ctx, s.node.Processes)
	if err != nil {
		return nil, err
	}
	return reader.Channels(names)
}

// channel starts to read one event channel. The logs are read in parallel.
func (s *show) channel(ctx context.Context, channel events.Channel) {
	in := s.merger.Add(ctx)
	s.running.Go(func() {
		defer in.Close(ctx)
		var at events.Position
		s.failed(ctx,
			s.reconnecting(ctx,
				func(ctx context.Context) error { return channel.Resume(ctx, s.query(), &at, s.emit(ctx, in)) }))
	})
}

func (s *show) query() events.Query {
	o := s.options
	q := events.Query{IDs: o.EventIDs, Level: o.Level, Since: o.Since, Until: o.Until, Last: o.Tail, Follow: o.Follow}
	if o.Grep != nil {
		q.Wants = func(e events.Event) bool { return o.Grep.Match(text(e)) }
	}
	return q
}

func (s *show) emit(ctx context.Context, in *Input) events.Emit {
	return func(batch []events.Event, caughtUp bool) error {
		records := make([]Record, 0, len(batch))
		for _, e := range batch {
			records = append(records, Record{
				Time: e.Time, Node: s.node.Name, Source: eventPrefix + e.Channel, Level: e.Level, Text: text(e),
				Event: &e,
			})
		}
		if err := in.Send(ctx, records); err != nil {
			return err
		}
		if caughtUp {
			in.CaughtUp(ctx)
		}
		return nil
	}
}

// text returns an event as a line of a log.
func text(e events.Event) string {
	return fmt.Sprintf("%s %d: %s", e.Provider, e.ID, strings.Join(strings.Fields(e.Message), " "))
}
