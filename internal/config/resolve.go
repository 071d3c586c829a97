package config

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// Resolve turns a path of the node file (sourceURL, privateKey, a secret's file) into a
// path that can be opened on this machine. It expands $VAR and ${VAR}, and replaces a
// leading ~ by the home folder. A relative path is relative to the node file's folder, or
// to the working folder if the node file is stdin. A variable that is not set stays as it
// is written, so that the later error of opening the path shows it. In a URL, only
// variables are expanded.
func (d Document) Resolve(path string) string { return resolve(d.File, path) }

// Resolve is Document.Resolve for a path in the cluster's document.
func (d ClusterDocument) Resolve(path string) string { return resolve(d.File, path) }

// resolve does the work of Document.Resolve. file is the node file that contains the path.
func resolve(file, path string) string {
	expanded := expandVariables(path)
	if expanded == "" || strings.Contains(expanded, "://") {
		return expanded
	}
	expanded = expandHome(expanded)
	if filepath.IsAbs(expanded) || file == Stdin {
		return expanded
	}
	return filepath.Join(filepath.Dir(file), expanded)
}

// Secret reads a secret from source: an environment variable, which lookupEnv reads, or the first
// line of a file.
func (d Document) Secret(source v1alpha1.SecretSource, lookupEnv func(name string) (string, bool)) (string, error) {
	if source.Env == "" {
		return firstLine(d.Resolve(source.File))
	}
	value, ok := lookupEnv(source.Env)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set; export it", source.Env)
	}
	return value, nil
}

func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w; it should have the secret in its first line", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() && lines.Err() != nil {
		return "", fmt.Errorf("read %s: %w", path, lines.Err())
	}
	return lines.Text(), nil
}

// Expand replaces $VAR and ${VAR} in a text that is not a path.
func (d Document) Expand(text string) string { return expandVariables(text) }

// Variables returns the names of the variables that Expand replaces in a text, in their order.
func Variables(text string) (names []string) {
	for _, reference := range variable().FindAllString(text, -1) {
		names = append(names, strings.Trim(reference, "${}"))
	}
	return names
}

func expandVariables(text string) string {
	return variable().ReplaceAllStringFunc(text, func(reference string) string {
		if value, ok := os.LookupEnv(strings.Trim(reference, "${}")); ok {
			return value
		}
		return reference
	})
}

func variable() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)
}

func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path // swdt does not look up the home folders of other users (~user)
	}
	home, err := localfile.Home()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}
