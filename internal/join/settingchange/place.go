package settingchange

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/format/yamledit"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
)

// draft is a text of the program, and what it becomes.
type draft struct {
	nodesettings.Text
	after []byte
	gone  []int // the lines of Content that after no longer has
}

func (d *draft) changed() bool { return !bytes.Equal(d.Content, d.after) }

// isYAML reports whether the text is a configuration file.
func (d *draft) isYAML() bool {
	return d.Kind == nodesettings.ConfigFile || d.Kind == nodesettings.DropIn
}

// edit changes the characters of the text, in its encoding and with its byte order mark.
func (d *draft) edit(change func(text string) (string, error)) error {
	decoded, err := windowstext.Decode(d.after)
	if err != nil {
		return fmt.Errorf("change %s: %w", d.Path, err)
	}
	if decoded.Encoding == windowstext.UTF8 || decoded.Encoding == windowstext.MarkedUTF8 { // line ends may differ
		mark := decoded.Encoding.Mark()
		text, err := change(string(d.after[len(mark):]))
		if err == nil {
			d.after = []byte(mark + text)
		}
		return d.named(err)
	}
	if !bytes.Equal(decoded.Encode(decoded.Content), d.after) {
		return fmt.Errorf("change %s: its text is %s, and has several kinds of line ends or characters behind its end; "+
			"save it as UTF-8", d.Path, decoded.Encoding)
	}
	text, err := change(decoded.Content)
	if err == nil {
		d.after = decoded.Encode(text)
	}
	return d.named(err)
}

// editLine changes a line of a script, which is that of Content.
func (d *draft) editLine(line int, change func(script) (string, error)) error {
	return d.edit(func(text string) (string, error) {
		at := line
		for _, gone := range d.gone {
			if gone < line {
				at--
			}
		}
		changed, err := change(script{file: d.Path, text: text, line: at})
		if err == nil && strings.Count(changed, "\n") < strings.Count(text, "\n") {
			d.gone = append(d.gone, line)
		}
		return changed, err
	})
}

func (d *draft) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", d.Path, err)
}

// setYAML sets a field of a configuration file, or removes it if value is nil.
func (d *draft) setYAML(path []string, value any) error {
	return d.edit(func(text string) (string, error) {
		if value == nil {
			return yamledit.Unset(text, path)
		}
		return yamledit.Set(text, path, value)
	})
}

// editing is a change of settings in progress.
type editing struct {
	*Settings
	drafts []*draft
	line   string // the service's command line
}

func (s *Settings) begin() *editing {
	e := &editing{Settings: s, line: s.service.GetServiceConfig().GetCommandLine()}
	for _, t := range s.texts.All {
		if t.Program == s.Program {
			e.drafts = append(e.drafts, &draft{Text: t, after: t.Content})
		}
	}
	return e
}

// draftAt returns the text of a place.
func (e *editing) draftAt(p upgradecheck.Place) *draft {
	for _, d := range e.drafts {
		if d.Path == p.File {
			return d
		}
	}
	return nil
}

// first returns the first text of a kind; nil: there is none.
func (e *editing) first(kind nodesettings.Kind) *draft {
	for _, d := range e.drafts {
		if d.Kind == kind {
			return d
		}
	}
	return nil
}

// changer returns the new value of a flag, or false to remove the flag.
type changer func(value string) (string, bool)

// changeLine changes a flag on the command line of the service, which is also that of the program. It calls start for
// each of both lines, and the result for each occurrence of the flag, the last one first.
func (e *editing) changeLine(d *draft, start func() changer, names ...string) error {
	line, ok := commandline.Change(e.line, e.exe(), start(), names...)
	program, _ := commandline.Change(string(d.after), e.exe(), start(), names...)
	if !ok || line == e.line && program != string(d.after) {
		return e.keptElsewhere()
	}
	e.line, d.after = line, []byte(program)
	return nil
}

// each changes every occurrence in the same way.
func each(change changer) func() changer { return func() changer { return change } }

// addToLine adds a flag to the command line of the service.
func (e *editing) addToLine(d *draft, name, value string) error {
	line, ok := commandline.Set(e.line, e.exe(), value, name)
	program, _ := commandline.Set(string(d.after), e.exe(), value, name)
	if !ok {
		return e.keptElsewhere()
	}
	e.line, d.after = line, []byte(program)
	return nil
}

// keptElsewhere returns the error for arguments that are not on the service's command line.
func (e *editing) keptElsewhere() error {
	wrappers := cmp.Or(strings.Join(e.service.GetProgram().GetWrappers(), " and "), "another program")
	return fmt.Errorf("change the arguments of %s: %s keeps them, and not the service's command line; change them there, or "+
		"give %s a configuration file with --config", e.Program, wrappers, e.Program)
}

// value returns the value of a field in a configuration file; nil: the file lacks it.
func (d *draft) value(f kubeletconfig.Field) (any, error) {
	decoded, err := windowstext.Decode(d.after)
	if err != nil {
		return nil, d.named(err)
	}
	var at any
	if err := yaml.Unmarshal([]byte(decoded.Content), &at); err != nil {
		return nil, d.named(err)
	}
	for _, name := range f.Path {
		fields, ok := at.(map[string]any)
		if !ok {
			return nil, nil
		}
		at = fields[name]
	}
	return at, nil
}
