package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/format/servicelog"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Kubelet reads logs from a node's kubelet; cluster.Cluster implements it.
type Kubelet interface {
	NodeLogs(ctx context.Context, node, file string, query url.Values, byteRange string) (io.ReadCloser, error)
}

// served is the folder on the node whose files kubelet serves.
const served = `C:\var\log\`

// NotServedError reports a source outside of the folder that kubelet serves.
type NotServedError struct{ Source string }

func (e *NotServedError) Error() string {
	return fmt.Sprintf(`%s cannot be read through the API server, since kubelet serves only files below %s; use --source ssh`,
		e.Source, strings.TrimSuffix(served, `\`))
}

// QueryDisabledError reports a kubelet that serves files, but does not answer queries for
// the logs of services.
type QueryDisabledError struct{ Node, Service string }

func (e *QueryDisabledError) Error() string {
	return fmt.Sprintf("ask the kubelet of node %s for the log of %s: the kubelet's NodeLogQuery is off; set "+
		"enableSystemLogQuery: true in the kubelet's "+
		"configuration (before 1.36 also the feature gate NodeLogQuery), or name a file, as "+
		"file:C:\\var\\log\\%[2]s.log", e.Node, e.Service)
}

// api reads one node's logs through the API server.
//
// It requests files by their names, which every kubelet serves. NodeLogQuery, kubelet's query for
// the log of a service, needs no file name. But it searches for only three file names, which do not
// include kubelet.err.log, and for a file it accepts neither a time nor a number of lines. So api
// uses NodeLogQuery only for messages that are not in a file: the messages that a service logs to
// Windows' Application log.
type api struct {
	kubelet  Kubelet
	node     string
	options  Options
	reporter ui.Reporter

	running sync.WaitGroup
	mutex   sync.Mutex
	errs    []error
}

// reading is a function that reads one log and sends the log's records to an Input. The caller
// closes the Input.
type reading func(ctx context.Context, in *Input) error

// ShowByAPI sends a node's logs to the merger. It closes the given Input, which stands for the node
// until the node's logs are known. It reads all logs at the same time, since the merger releases no
// line before the merger has a line of each log. ShowByAPI does not support Follow.
func ShowByAPI(ctx context.Context, kubelet Kubelet, node string, o Options, m *Merger, in *Input,
	reporter ui.Reporter) error {
	a := &api{kubelet: kubelet, node: node, options: o, reporter: reporter}
	names := o.Sources
	if len(names) == 0 {
		names = byDefault()
	}
	var all []reading
	var none []*NothingError
	for _, name := range names {
		of, err := a.source(ctx, name)
		all = append(all, of...)
		a.failed(err)
		if len(of) == 0 && err == nil {
			none = append(none, &NothingError{Sources: []string{name}})
		}
	}
	if len(all) > 0 {
		o.warnOf(none, reporter)
	}
	for _, read := range all {
		a.begin(ctx, read, m.Add(ctx))
	}
	in.Close(ctx)
	a.running.Wait()
	if len(all) == 0 && len(a.errs) == 0 {
		return &NothingError{Sources: names}
	}
	return errors.Join(a.errs...)
}

// begin starts to read one log. The logs are read in parallel.
func (a *api) begin(ctx context.Context, read reading, in *Input) {
	a.running.Go(func() {
		defer in.Close(ctx)
		a.failed(read(ctx, in))
	})
}

// failed stores err, the error of one log, unless it is nil. Reading the other logs
// continues.
func (a *api) failed(err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err != nil {
		a.errs = append(a.errs, err)
	}
}

// source returns a reading for each existing log of a source.
func (a *api) source(ctx context.Context, name string) ([]reading, error) {
	patterns, query, err := places(name)
	if err != nil {
		return nil, err
	}
	var all []reading
	seen := map[string]bool{}
	for _, pattern := range patterns {
		files, err := a.expand(ctx, pattern)
		if err == nil && !a.options.Since.IsZero() && !strings.HasPrefix(name, filePrefix) {
			files, err = a.withRotated(ctx, pattern, files)
		}
		if err != nil {
			return all, err
		}
		for _, file := range files {
			if seen[strings.ToLower(file)] {
				continue
			}
			seen[strings.ToLower(file)] = true
			all = append(all, func(ctx context.Context, in *Input) error { return a.file(ctx, name, file, in) })
		}
	}
	if len(all) == 0 && query != "" {
		all = append(all, func(ctx context.Context, in *Input) error { return a.query(ctx, name, query, in) })
	}
	return all, nil
}

// places returns the patterns of a source's files below the served folder, with slashes. If the
// source is a service that is not in the table, places returns the patterns of a service's usual
// log files, and the service's name as the query for NodeLogQuery. For other sources, the query is
// "".
func places(name string) (patterns []string, query string, err error) {
	var all []string
	switch known, ok := tableEntry(name); {
	case strings.HasPrefix(name, filePrefix):
		all = []string{absolute(strings.TrimPrefix(name, filePrefix))}
	case strings.HasPrefix(name, podPrefix):
		all = []string{podPattern(defaultPodLogs, strings.TrimPrefix(name, podPrefix))}
	case strings.HasPrefix(name, eventPrefix):
		return nil, "", &NotServedError{Source: name}
	case !ok:
		all, query = servicelog.Usual(name), name
	default:
		for _, service := range known.Services {
			all = append(all, servicelog.Usual(service)...)
		}
		all = append(all, known.Paths...)
		for _, pod := range known.Pods {
			all = append(all, podPattern(defaultPodLogs, pod))
		}
	}
	for _, pattern := range all {
		if len(pattern) > len(served) && strings.EqualFold(pattern[:len(served)], served) {
			patterns = append(patterns, strings.ReplaceAll(pattern[len(served):], `\`, "/"))
		}
	}
	if len(patterns) == 0 {
		return nil, "", &NotServedError{Source: name}
	}
	return patterns, query, nil
}

// expand returns the existing files that match a pattern, by listing folders.
func (a *api) expand(ctx context.Context, pattern string) ([]string, error) {
	folders := []string{""}
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		var next []string
		for _, folder := range folders {
			if !last && !strings.Contains(part, "*") {
				next = append(next, folder+part+"/")
				continue
			}
			entries, err := a.list(ctx, folder)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				name, isFolder := strings.CutSuffix(entry, "/")
				if isFolder != last && fits(part, name) {
					next = append(next, folder+entry)
				}
			}
		}
		folders = next
	}
	return folders, nil
}

// withRotated returns files, and the older parts of each that have lines of Since or later. kubelet's listing has no times, so
// the last lines of a part decide.
func (a *api) withRotated(ctx context.Context, pattern string, files []string) ([]string, error) {
	if strings.HasPrefix(pattern, "pods/") || len(files) == 0 {
		return files, nil
	}
	folder := path.Dir(files[0]) + "/"
	entries, err := a.list(ctx, strings.TrimPrefix(folder, "./"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, file := range files {
		for _, entry := range entries {
			if !servicelog.IsRotated(path.Base(file), entry) {
				continue
			}
			older := strings.TrimPrefix(folder, "./") + entry
			switch isReached, err := a.isReached(ctx, older); {
			case err != nil:
				return nil, err
			case isReached && servicelog.IsCompressed(entry):
				a.reporter.Warn("%s is compressed, and may have lines of that time", entry)
			case isReached:
				all = append(all, older)
			}
		}
		all = append(all, file)
	}
	return all, nil
}

// isReached reports whether a file may have lines of Since or later.
func (a *api) isReached(ctx context.Context, file string) (bool, error) {
	if servicelog.IsCompressed(file) {
		return true, nil
	}
	text, err := a.part(ctx, file, "bytes=-"+strconv.Itoa(firstPart), firstPart)
	if err != nil {
		return false, err
	}
	reader := logline.Reader{Written: time.Now().UTC()}
	var last logline.Read
	for raw := range bytes.SplitAfterSeq(text, []byte("\n")) {
		logline.EachText(raw, func(line []byte) { last = reader.Line(line) })
	}
	return last.Time.IsZero() || !last.Time.Before(a.options.Since), nil
}

// list reads the page that Go's file server returns for a folder: one line for each entry,
// with a link whose text is the name, followed by a slash for folders.
func (a *api) list(ctx context.Context, folder string) ([]string, error) {
	body, err := a.kubelet.NodeLogs(ctx, a.node, folder, nil, "")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var entries []string
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		_, rest, link := strings.Cut(lines.Text(), `<a href="`)
		_, rest, text := strings.Cut(rest, `">`)
		name, _, end := strings.Cut(rest, "</a>")
		if link && text && end {
			entries = append(entries, html.UnescapeString(name))
		}
	}
	return entries, lines.Err()
}

const (
	firstPart = 64 << 10 // the size in bytes of the first part that is read from a file's end
	// lastPart limits the size of these parts. If all smaller parts have too few lines, the whole
	// file is read.
	lastPart = 64 << 20
)

// file sends the last lines of a file. It reads ever larger parts of the file's end, until a part
// has enough lines. If all lines are wanted, or if lines must be filtered, it reads the whole file.
func (a *api) file(ctx context.Context, source, file string, in *Input) error {
	wanted := a.options.Tail
	if wanted < 0 || a.options.picks() {
		return a.read(ctx, source, file, in)
	}
	for size := firstPart; size < lastPart; size *= 8 {
		text, err := a.part(ctx, file, "bytes=-"+strconv.Itoa(size), size)
		if err != nil {
			return err
		}
		whole := len(text) < size
		if whole || bytes.Count(text, []byte("\n")) > wanted {
			wide, err := a.isWide(ctx, file, text, whole)
			switch {
			case err != nil:
				return err
			case wide:
				return a.read(ctx, source, file, in)
			}
			return a.send(ctx, source, file, bytes.NewReader(text[lineStart(text, wanted):]), everyLine, in)
		}
	}
	return a.read(ctx, source, file, in)
}

// part returns a range of a file's bytes: at most limit+1 bytes.
func (a *api) part(ctx context.Context, file, byteRange string, limit int) ([]byte, error) {
	body, err := a.kubelet.NodeLogs(ctx, a.node, file, nil, byteRange)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return text, nil
}

// isWide reports whether a file is UTF-16, which only the beginning of the file shows. A later part
// of a UTF-16 file is not usable, since the part may begin in the middle of a character.
func (a *api) isWide(ctx context.Context, file string, text []byte, whole bool) (wide bool, err error) {
	if !whole {
		if text, err = a.part(ctx, file, "bytes=0-"+strconv.Itoa(logline.MarkSize-1), logline.MarkSize); err != nil {
			return false, err
		}
	}
	_, wide = logline.Mark(text)
	return wide, nil
}

// lineStart returns the offset at which the given number of last lines of text begins.
func lineStart(text []byte, lines int) int {
	wanted := int64(lines)
	if wanted == 0 {
		return len(text)
	}
	from, _ := lastLines(text, wanted)
	return from
}

// lastLines returns the offset at which the wanted number of last lines begins, and whether text
// has so many lines. The last byte of text never begins a line.
func lastLines(text []byte, wanted int64) (from int, found bool) {
	end := max(0, len(text)-1)
	for {
		end = bytes.LastIndexByte(text[:end], '\n')
		if end < 0 {
			return 0, false
		}
		if wanted--; wanted == 0 {
			return end + 1, true
		}
	}
}

// read reads the whole file, and sends the lines that the options select.
func (a *api) read(ctx context.Context, source, file string, in *Input) error {
	body, err := a.kubelet.NodeLogs(ctx, a.node, file, nil, "")
	if err != nil {
		return err
	}
	defer body.Close()
	return a.send(ctx, source, file, body, a.options.Tail, in)
}

// send converts a log's bytes to records, and sends the records that the options select. Unless
// last is everyLine, send sends only the last of these records, at most the given number. The
// node's time zone is unknown: a time without a zone counts as UTC.
func (a *api) send(ctx context.Context, source, file string, from io.Reader, last int, in *Input) error {
	windowsPath := served + strings.ReplaceAll(file, "/", `\`)
	if strings.HasPrefix(file, "pods/") {
		source = podSource(defaultPodLogs, windowsPath)
	}
	l := newLines(File{Node: a.node, Source: source, Path: windowsPath}, a.options, last)
	from = logline.Text(from)
	buffer := make([]byte, firstPart)
	for {
		n, err := from.Read(buffer)
		records, past := l.split(buffer[:n])
		if err := in.Send(ctx, records); err != nil {
			return err
		}
		switch {
		case past != nil:
			l.reportUntimed(a.reporter)
			return nil
		case err == io.EOF:
			l.reportUntimed(a.reporter)
			return in.Send(ctx, l.end())
		case err != nil:
			return fmt.Errorf("read %s: %w", windowsPath, err)
		}
	}
}

// query reads a service's log by NodeLogQuery.
func (a *api) query(ctx context.Context, source, service string, in *Input) error {
	o := a.options
	values := url.Values{"query": {service}}
	if !o.Since.IsZero() {
		values.Set("sinceTime", o.Since.UTC().Format(time.RFC3339))
	}
	if !o.Until.IsZero() {
		values.Set("untilTime", o.Until.UTC().Format(time.RFC3339))
	}
	if o.Tail >= 0 && !o.picks() {
		values.Set("tailLines", strconv.Itoa(o.Tail))
	}
	body, err := a.kubelet.NodeLogs(ctx, a.node, "", values, "")
	if apierrors.IsNotFound(err) {
		return &NothingError{Sources: []string{source}}
	}
	if err != nil {
		return err
	}
	defer body.Close()
	reader := bufio.NewReader(body)
	// A kubelet that does not support queries answers with a listing of its log folder
	// instead.
	if head, _ := reader.Peek(len("<!doctype html>")); bytes.HasPrefix(bytes.ToLower(head), []byte("<!doctype")) ||
		bytes.HasPrefix(head, []byte("<pre>")) {
		return &QueryDisabledError{Node: a.node, Service: service}
	}
	return a.send(ctx, source, path.Base(service), reader, a.options.Tail, in)
}
