package v1alpha1

import (
	"fmt"
	"strings"
)

// Build says how your machine makes a binary. `swdt push --build` runs
// the command before a push, --watch whenever a source file changes.
type Build struct {
	// Dir is the folder in which the command runs and whose files are watched
	// for changes; a relative path is relative to the node file's folder.
	// Default: the node file's folder.
	Dir string `yaml:"dir,omitempty"`
	// Command builds the binary at sourceURL. swdt runs a list as a program with
	// its arguments, and a text with the shell (sh, or cmd on Windows).
	Command Command `yaml:"command"`
	// Env are environment variables of the command, added to those of swdt;
	// $VARIABLES are expanded.
	Env map[string]string `yaml:"env,omitempty"`
	// Watch are patterns of files under dir whose change starts a build: **
	// matches any folders, * any part of a name, and ! in front excludes files.
	// .git, vendor and node_modules are never watched. Default **/*.go.
	Watch []string `yaml:"watch,omitempty"`
}

// DefaultWatch is the pattern that a build watches if the node file sets none.
const DefaultWatch = "**/*.go"

// Command is a command line for your machine; exactly one of its fields is set.
type Command struct {
	Shell string   // a line that the shell parses
	Args  []string // a program and its arguments, unchanged
}

// SetText sets the command from a text of the node file, SetList from a list.
func (c *Command) SetText(text string)   { *c = Command{Shell: text} }
func (c *Command) SetList(args []string) { *c = Command{Args: args} }

// MarshalYAML writes the command in the form in which it was read.
func (c Command) MarshalYAML() (any, error) {
	if c.Args != nil {
		return c.Args, nil
	}
	return c.Shell, nil
}

func (c Command) String() string {
	if c.Args == nil {
		return c.Shell
	}
	return strings.Join(c.Args, " ")
}

func defaultBuild(b *Build) {
	if b == nil {
		return
	}
	if len(b.Watch) == 0 {
		b.Watch = []string{DefaultWatch}
	}
	orElse(&b.Dir, ".")
}

func validateBuild(p *problems, field, source string, b Build) {
	switch {
	case b.Command.Args != nil && (len(b.Command.Args) == 0 || b.Command.Args[0] == ""):
		p.add(field+".command", "names no program", "write it as the first item")
	case b.Command.Args == nil && strings.TrimSpace(b.Command.Shell) == "":
		p.add(field+".command", "is missing", "write what builds the binary, such as make kubelet.exe")
	}
	if strings.Contains(b.Command.Shell+strings.Join(b.Command.Args, ""), "\x00") {
		p.add(field+".command", "has a null character", "remove it")
	}
	for i, pattern := range b.Watch {
		validatePattern(p, at(field+".watch", i, ""), pattern)
	}
	if scheme, _, ok := strings.Cut(source, "://"); ok &&
		strings.HasPrefix(strings.ToLower(scheme), "http") || isRegistry(source) {
		p.add(field, "is set, but sourceURL is not a path on your machine",
			"make sourceURL the path that the command writes")
	}
	for name, value := range sorted(b.Env) {
		item := fmt.Sprintf("%s.env[%s]", field, name)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			p.add(item, "is not the name of an environment variable", "write the name alone")
		case strings.Contains(value, "\x00"):
			p.add(item, "has a null character", "remove it")
		}
	}
}

// validatePattern rejects patterns that cannot match any file under dir.
func validatePattern(p *problems, field, pattern string) {
	const form = "write it relative to dir, such as **/*.go"
	bare := strings.TrimPrefix(pattern, "!")
	switch {
	case bare == "":
		p.add(field, "is empty", form)
	case strings.HasPrefix(bare, "/") || strings.Contains(bare, `\`) || strings.Contains(bare, ":"):
		p.add(field, fmt.Sprintf("%.60q is not a pattern below dir", pattern), form+", with forward slashes")
	case strings.HasPrefix(bare, "../") || strings.Contains(bare, "/../"):
		p.add(field, fmt.Sprintf("%.60q leads out of dir", pattern), "make dir the folder above")
	case strings.Contains(strings.ReplaceAll("/"+bare+"/", "/**/", "/"), "**"):
		p.add(field, fmt.Sprintf("%.60q has ** beside other characters", pattern),
			"write ** between slashes, such as **/*.go")
	case strings.ContainsAny(bare, "[]"):
		p.add(field, fmt.Sprintf("%.60q has brackets", pattern), "only * ? and ** are understood")
	}
}
