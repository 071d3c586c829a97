package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// sshConfig is ~/.ssh/config. file is nil if there is no such file.
type sshConfig struct {
	file      *ssh_config.Config
	home      string
	lookupEnv func(string) (string, bool)
	leftOut   []string // the Match lines, with file and line, whose conditions swdt does not know
}

func readConfig(o Options) (sshConfig, error) {
	c := sshConfig{home: o.HomeDir, lookupEnv: o.LookupEnv}
	text, err := c.read(o.Config, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, &RouteError{Where: "SSH config", Err: err}
	}
	if c.file, err = ssh_config.DecodeBytes(text); err != nil {
		return c, &RouteError{Where: o.Config,
			Err: fmt.Errorf("%w; correct it, or set everything in spec.credentials", err)}
	}
	return c, nil
}

// mostIncludes is how deep the files of Include may include others, as in OpenSSH.
const mostIncludes = 16

// read returns the text of a config with the files that it includes, without the lines that ssh understands and the
// parser does not: a file that works for ssh must not stop swdt. The parser supports no conditions of Match but host,
// with one pattern; exec would run commands. A Match block with others matches nothing.
func (c *sshConfig) read(file string, depth int) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	inBlock, number := false, 0
	for line := range bytes.Lines(text) {
		number++
		words := wordsOf(string(line))
		keyword := ""
		if len(words) > 1 {
			keyword = strings.ToLower(words[0])
		}
		switch {
		case keyword == "include" && inBlock:
			// The parser reads these files, since they apply to the block's hosts alone. It splits at spaces and then looks
			// for patterns, and knows no quotes.
			fmt.Fprintf(&all, "Include %s\n", patterns(words[1:]))
		case keyword == "include":
			included, err := c.included(words[1:], depth+1)
			if err != nil {
				return nil, err
			}
			all.Write(included)
		case keyword == "match" && len(words) == 3 && strings.EqualFold(words[1], "host"):
			fmt.Fprintf(&all, "Host %s\n", strings.ReplaceAll(words[2], ",", " "))
		case keyword == "match" && (len(words) != 2 || !strings.EqualFold(words[1], "all")):
			all.WriteString("Host !*\n")
			c.leftOut = append(c.leftOut, fmt.Sprintf("%s:%d (%s)", file, number, strings.Join(words, " ")))
		default:
			all.Write(line)
		}
		inBlock = inBlock || keyword == "host" || keyword == "match"
	}
	return all.Bytes(), nil
}

// patterns joins words for the parser.
func patterns(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, strings.ReplaceAll(word, " ", "?"))
	}
	return strings.Join(all, " ")
}

// included returns the text of the files of an Include. As in ssh, a file that is missing is no error.
func (c *sshConfig) included(patterns []string, depth int) ([]byte, error) {
	if depth > mostIncludes {
		return nil, fmt.Errorf("line Include %s: does it include itself?", strings.Join(patterns, " "))
	}
	var all bytes.Buffer
	for _, pattern := range patterns {
		pattern = c.fromHome(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(c.home, ".ssh", pattern)
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("line Include %s: %w", pattern, err)
		}
		for _, file := range files {
			text, err := c.read(file, depth)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("a file of Include: %w", err)
			}
			all.Write(text)
			all.WriteString("\nHost *\n") // ends the file's last block
		}
	}
	return all.Bytes(), nil
}

// variable is a variable of the environment in a name of a file.
var variable = regexp.MustCompile(`\$\{\w+\}`)

// fromHome expands ~ and variables. A variable that is not set stays as it is, so that an error about the file shows it.
func (c sshConfig) fromHome(path string) string {
	path = variable.ReplaceAllStringFunc(path, func(text string) string {
		if value, ok := c.lookupEnv(text[len("${") : len(text)-len("}")]); ok {
			return value
		}
		return text
	})
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(c.home, rest)
	}
	return path
}

// wordsOf returns the words of a line, without the quotes of those that have spaces. A = may follow the first word.
func wordsOf(line string) (words []string) {
	for line = strings.TrimSpace(line); line != "" && line[0] != '#'; line = strings.TrimLeft(line, " \t") {
		end := strings.IndexAny(line, " \t")
		if len(words) == 0 {
			end = strings.IndexAny(line, " \t=")
		}
		quoted, after, isQuoted := strings.Cut(strings.TrimPrefix(line, `"`), `"`)
		switch {
		case line[0] == '"' && isQuoted:
			words, line = append(words, quoted), after
		case end < 0:
			return append(words, line)
		default:
			words, line = append(words, line[:end]), line[end:]
		}
		if len(words) == 1 {
			line = strings.TrimPrefix(strings.TrimLeft(line, " \t"), "=")
		}
	}
	return words
}
