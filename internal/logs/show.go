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
	"github.com/swdt-dev/swdt/internal/events"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// rescan is how often a node is looked at for logs that are new: of a container
// that was started again, of a service that has not logged yet.
const rescan = 2 * time.Second

// NothingError: the node has no such log.
type NothingError struct {
	Sources []string
	Wanted  []Found // which some service is set up to write
}

func (e *NothingError) Error() string {
	text := "no log of " + strings.Join(e.Sources, ", ") + " exists"
	if len(e.Wanted) > 0 {
		text += "; " + paths(e.Wanted) + " is what would be one"
	}
	return text + "; `swdt logs list` shows those that do, -f waits for one"
}

// show is one node's logs on their way to the merger.
type show struct {
	node    *node.Node
	options Options
	merger  *Merger
	tell    ui.Reporter

	running sync.WaitGroup
	mutex   sync.Mutex
	errs    []error
	read    map[string]bool // by path, folded
	owners  map[fileID]string
	places  map[fileID]*placesOf
	several atomic.Bool // there is more than one log
}

// Show sends a node's logs to the merger and closes in, which has stood for the
// node until its logs were known. With Follow it ends with ctx.
func Show(ctx context.Context, n *node.Node, o Options, m *Merger, in *Input, tell ui.Reporter) error {
	s := &show{node: n, options: o, merger: m, tell: tell, read: map[string]bool{}, owners: map[fileID]string{}, places: map[fileID]*placesOf{}}
	names := o.Sources
	if len(names) == 0 {
		names = byDefault()
	}
	err := s.again(ctx, func(ctx context.Context) error { return s.begin(ctx, names) })
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

// begin starts reading all there is, once it is known that there is all that was
// named.
func (s *show) begin(ctx context.Context, names []string) error {
	files, named := split(names)
	found, none, err := find(ctx, s.node, files)
	if err != nil {
		return err
	}
	channels, err := s.channels(ctx, named)
	if err != nil {
		return err
	}
	wanted := found
	if !s.options.Follow {
		wanted = existing(found)
	}
	if len(wanted) == 0 && len(named) == 0 && (!s.options.Follow || len(s.options.Sources) > 0) {
		return &NothingError{Sources: names, Wanted: found}
	}
	s.options.tellOf(none, s.tell)
	s.several.Store(len(wanted)+len(channels) != 1)
	for _, file := range wanted {
		s.file(ctx, file.File, s.options, nil)
	}
	for _, channel := range channels {
		s.channel(ctx, channel)
	}
	return nil
}

// tellOf sources that somebody named and of which there is nothing, beside others.
func (o Options) tellOf(none []*NothingError, tell ui.Reporter) {
	if o.Follow || len(o.Sources) == 0 {
		return
	}
	for _, nothing := range none {
		tell.Warn("%v", nothing)
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

// file reads one file beside the others.
func (s *show) file(ctx context.Context, file File, o Options, known func() []*agentv1.TailPlace) {
	s.read[strings.ToLower(file.Path)] = true
	in := s.merger.Add(ctx)
	s.running.Go(func() {
		defer in.Close(ctx)
		t := &tail{lines: newLines(file, o, o.last()), in: in, tell: s.tell, known: known,
			owns: func(p *agentv1.TailPlace) bool { return s.owns(file, p) }}
		t.lines.verbatim = s.verbatim(o)
		s.failed(ctx, s.again(ctx, func(ctx context.Context) error { return t.read(ctx, s.node.Files) }))
	})
}

// fileID is a file, whatever it is called.
type fileID struct{ volume, index uint64 }

// owns is whether a file that is followed is read under this path and no other. One
// that was rotated away is found by a pattern as new, under its new name, when all
// that it says has come already.
func (s *show) owns(file File, at *agentv1.TailPlace) bool {
	if !s.options.Follow || at.GetIndex() == 0 { // not every file system numbers its files
		return true
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	id := fileID{at.GetVolume(), at.GetIndex()}
	if _, known := s.owners[id]; !known {
		s.owners[id] = file.Path
	}
	if s.owners[id] != file.Path {
		return false
	}
	if s.places[id] == nil {
		s.places[id] = &placesOf{}
	}
	s.places[id].add(at)
	return true
}

// placesOf are those of one file that is followed.
type placesOf struct {
	last   *agentv1.TailPlace
	before *agentv1.TailPlace // the last one before the file was truncated; nil: it was not
}

func (p *placesOf) add(at *agentv1.TailPlace) {
	if p.last != nil && at.GetOffset() < p.last.GetOffset() {
		p.before = p.last
	}
	p.last = at
}

// followed are the places up to which logs were shown. A new file that begins as one of
// them did is a copy that a rotation has made before it truncated the log.
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

// verbatim is whether lines need not be looked at: nobody asked for anything but
// their text, and there is no other log to be put in order with. Nil: they do.
func (s *show) verbatim(o Options) func() bool {
	if !o.Verbatim || o.picks() || !o.Since.IsZero() {
		return nil
	}
	return func() bool { return !s.several.Load() }
}

// again does work anew where it loses the connection, while logs are followed.
func (s *show) again(ctx context.Context, work func(context.Context) error) error {
	if !s.options.Follow {
		return work(ctx)
	}
	return s.node.Again(ctx, s.tell, work)
}

// failed keeps an error of one log: the others go on.
func (s *show) failed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	ofNode := ofConnection(err)
	if s.options.Follow && !ofNode && !errors.Is(err, errEnded) {
		s.tell.Warn("%v; it is followed no more", err) // the others may go on for hours
	}
	if ofNode && slices.ContainsFunc(s.errs, ofConnection) {
		return // all logs of a node are lost at once
	}
	s.errs = append(s.errs, err)
}

// ofConnection is whether an error is of the way to the node, which all its logs share.
func ofConnection(err error) bool {
	var lost *node.LostError
	var unreachable *node.UnreachableError
	return errors.As(err, &lost) || errors.As(err, &unreachable)
}

// rescan adds what appears later; that is read from its beginning.
func (s *show) rescan(ctx context.Context, names []string) {
	files, _ := split(names)
	fromStart := s.options
	fromStart.Tail = -1
	ticker := time.NewTicker(rescan)
	defer ticker.Stop()
	for len(files) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var found []Found
		err := s.again(ctx, func(ctx context.Context) (err error) {
			found, err = Find(ctx, s.node, files)
			return err
		})
		if err != nil {
			s.failed(ctx, err)
			return
		}
		for _, file := range existing(found) {
			if !s.read[strings.ToLower(file.Path)] {
				s.tell.Info("new log %s", file.Path)
				s.several.Store(true)
				s.file(ctx, file.File, fromStart, s.followed)
			}
		}
	}
}

// channels finds event channels on the node.
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

// channel reads one event channel beside the others.
func (s *show) channel(ctx context.Context, channel events.Channel) {
	in := s.merger.Add(ctx)
	s.running.Go(func() {
		defer in.Close(ctx)
		var at events.Position
		s.failed(ctx, s.again(ctx, func(ctx context.Context) error { return channel.Resume(ctx, s.query(), &at, s.emit(ctx, in)) }))
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
	return func(batch []events.Event, stands bool) error {
		records := make([]Record, 0, len(batch))
		for _, e := range batch {
			records = append(records, Record{
				Time: e.Time, Node: s.node.Name, Source: eventPrefix + e.Channel, Level: e.Level, Text: text(e), Event: &e,
			})
		}
		if err := in.Send(ctx, records); err != nil {
			return err
		}
		if stands {
			in.CaughtUp(ctx)
		}
		return nil
	}
}

// text is an event as a line of a log.
func text(e events.Event) string {
	return fmt.Sprintf("%s %d: %s", e.Provider, e.ID, strings.Join(strings.Fields(e.Message), " "))
}
