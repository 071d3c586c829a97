package logs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/servicelog"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Found is a file of a source.
type Found struct {
	File
	Exists   bool // false: the user or the settings of a service name the file, but it does not exist yet
	Rotated  bool // an older part of another of the files
	Size     int64
	Modified time.Time
}

// The prefixes of sources that are not in the table.
const (
	filePrefix  = "file:"
	podPrefix   = "pod/"
	eventPrefix = "event:"
)

// UnknownSourceError reports a name that is neither a source nor a service of the node.
type UnknownSourceError struct{ Name string }

func (e *UnknownSourceError) Error() string {
	var names []string
	for _, source := range Sources() {
		names = append(names, source.Name)
	}
	return fmt.Sprintf("%s is not a source of logs, and no service of the node has that name; use one of %s, a "+
		"service's name, "+
		`pod/NAMESPACE/NAME[/CONTAINER], file:C:\… or event:CHANNEL`, e.Name, strings.Join(names, ", "))
}

// CheckName returns an error for mistakes in a source's name that can be found without a
// node.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of a source is empty")
	case strings.HasPrefix(name, filePrefix):
		if absolute(strings.TrimPrefix(name, filePrefix)) == "" {
			return fmt.Errorf(`%s: write the full path, as in file:C:\var\log\x.log`, name)
		}
	case strings.HasPrefix(name, podPrefix):
		parts := strings.Split(name, "/")
		if len(parts) < 3 || len(parts) > 4 || slices.Contains(parts, "") || strings.Contains(name, `\`) {
			return fmt.Errorf("%s: write pod/NAMESPACE/NAME or pod/NAMESPACE/NAME/CONTAINER", name)
		}
	case strings.HasPrefix(name, eventPrefix):
		return events.CheckName(strings.TrimPrefix(name, eventPrefix))
	case strings.ContainsAny(name, `/\:*`):
		return &UnknownSourceError{Name: name}
	}
	return nil
}

// IsEvent returns the event channel of a source, and whether the source is an event channel.
func IsEvent(name string) (channel string, ok bool) { return strings.CutPrefix(name, eventPrefix) }

// finder looks for logs on one node.
type finder struct {
	node    *node.Node
	podLogs string // the containers' log folder; "": the setting was not read yet
	rotated bool   // find the older parts of logs too
	folders map[string][]*agentv1.FileInfo
}

// Find returns the files of the sources. It also returns a file that does not exist yet if the
// settings of a service name it as the service's log, or if a source names it as file:PATH without
// a *.
func Find(ctx context.Context, n *node.Node, names []string) ([]Found, error) {
	all, _, err := find(ctx, n, names, false)
	return all, err
}

// find is like Find, but also returns an error for each name that has no existing file, and the older parts of
// logs of programs if rotated is set.
func find(ctx context.Context, n *node.Node, names []string, rotated bool) (all []Found, none []*NothingError, err error) {
	f := &finder{node: n, rotated: rotated}
	for _, name := range names {
		found, err := f.source(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		if len(existing(found)) == 0 {
			none = append(none, &NothingError{Sources: []string{name}, Wanted: found})
		}
		all = append(all, found...)
	}
	return unique(all), none, nil
}

// unique keeps each file once, with the first source that has it.
func unique(all []Found) []Found {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(f Found) bool {
		key := strings.ToLower(f.Path)
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

func (f *finder) source(ctx context.Context, name string) ([]Found, error) {
	if pattern, ok := strings.CutPrefix(name, filePrefix); ok {
		found, err := f.glob(ctx, name, absolute(pattern))
		if err == nil && len(found) == 0 && !strings.Contains(pattern, "*") {
			found = []Found{f.found(name, absolute(pattern))}
		}
		return found, err
	}
	if rest, ok := strings.CutPrefix(name, podPrefix); ok {
		return f.pod(ctx, rest)
	}
	if source, ok := tableEntry(name); ok {
		return f.known(ctx, source)
	}
	exists, err := f.service(ctx, name)
	if err != nil {
		return nil, err
	}
	if exists == nil {
		return nil, &UnknownSourceError{Name: name}
	}
	return f.known(ctx, Source{Name: name, Services: []string{name}})
}

func (f *finder) known(ctx context.Context, source Source) ([]Found, error) {
	var all []Found
	for _, service := range source.Services {
		found, err := f.ofService(ctx, source.Name, service)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, pattern := range source.Paths {
		found, err := f.glob(ctx, source.Name, pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	all, err := f.withRotated(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, pod := range source.Pods {
		found, err := f.pod(ctx, pod)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// withRotated returns logs, and the older parts of each that a rotation has left in its folder.
func (f *finder) withRotated(ctx context.Context, logs []Found) ([]Found, error) {
	if !f.rotated {
		return logs, nil
	}
	var all []Found
	for _, log := range logs {
		entries, err := f.folder(ctx, log.Path[:strings.LastIndex(log.Path, `\`)])
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !entry.GetFolder() && servicelog.IsRotated(base(log.Path), base(entry.GetPath())) {
				part := f.existing(log.Source, entry)
				part.Rotated = true
				all = append(all, part)
			}
		}
		all = append(all, log)
	}
	return all, nil
}

// folder returns the entries of a folder, which it lists once.
func (f *finder) folder(ctx context.Context, folder string) ([]*agentv1.FileInfo, error) {
	key := strings.ToLower(folder)
	if entries, known := f.folders[key]; known {
		return entries, nil
	}
	entries, err := f.expand(ctx, folder+`\*`)
	if err != nil {
		return nil, err
	}
	if f.folders == nil {
		f.folders = map[string][]*agentv1.FileInfo{}
	}
	f.folders[key] = entries
	return entries, nil
}

func (f *finder) existing(source string, info *agentv1.FileInfo) Found {
	found := f.found(source, info.GetPath())
	found.Exists, found.Size, found.Modified = true, info.GetSize(), info.GetModified().AsTime()
	return found
}

func (f *finder) found(source, path string) Found {
	return Found{File: File{Node: f.node.Name, Source: source, Path: path}}
}

// glob returns the files that match a pattern.
func (f *finder) glob(ctx context.Context, source, pattern string) ([]Found, error) {
	infos, err := f.expand(ctx, pattern)
	if err != nil {
		return nil, err
	}
	var all []Found
	for _, info := range infos {
		if info.GetFolder() {
			continue
		}
		all = append(all, f.existing(source, info))
	}
	return all, nil
}

// expand returns the files and folders that match a pattern.
func (f *finder) expand(ctx context.Context, pattern string) ([]*agentv1.FileInfo, error) {
	star := strings.Index(pattern, "*")
	if star < 0 {
		info, err := f.node.Files.Stat(ctx, &agentv1.StatRequest{Path: pattern})
		if missing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get the attributes of %s: %w", pattern, err)
		}
		return []*agentv1.FileInfo{info}, nil
	}
	cut := strings.LastIndex(pattern[:star], `\`)
	folder, rest := pattern[:cut], pattern[cut+1:]
	name, below, deeper := strings.Cut(rest, `\`)
	if strings.HasSuffix(folder, ":") {
		folder += `\`
	}
	reply, err := f.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	var all []*agentv1.FileInfo
	for _, entry := range reply.GetEntries() {
		if !fits(name, base(entry.GetPath())) {
			continue
		}
		if !deeper {
			all = append(all, entry)
			continue
		}
		if !entry.GetFolder() {
			continue
		}
		inside, err := f.expand(ctx, entry.GetPath()+`\`+below)
		if err != nil {
			return nil, err
		}
		all = append(all, inside...)
	}
	return all, nil
}

// missing reports whether err means that a file or folder does not exist.
func missing(err error) bool { return errors.Is(err, fault.ErrNotExist) }

// fits reports whether a name matches a pattern, without regard to case as on Windows. In
// the pattern, only * is special.
func fits(pattern, name string) bool {
	literal := strings.NewReplacer("[", `\[`, "?", `\?`)
	ok, err := path.Match(literal.Replace(strings.ToLower(pattern)), strings.ToLower(name))
	return ok && err == nil
}

func base(windowsPath string) string { return windowsPath[strings.LastIndex(windowsPath, `\`)+1:] }

// absolute returns the clean form of an absolute path in the notation of Windows or Linux.
// It returns "" for any other path.
func absolute(p string) string {
	p = strings.ReplaceAll(strings.Trim(strings.TrimSpace(p), `"`), "/", `\`)
	switch {
	case strings.HasPrefix(p, `\\`) || p == "":
		return ""
	case p[0] == '\\':
		p = "C:" + p
	}
	if len(p) < 4 || p[1] != ':' || p[2] != '\\' {
		return ""
	}
	for strings.Contains(p[2:], `\\`) {
		p = p[:2] + strings.ReplaceAll(p[2:], `\\`, `\`)
	}
	return p
}
