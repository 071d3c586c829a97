package source

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// location is the place of a binary: a local path, a URL to download, or an artifact in a registry.
type location struct {
	path     string
	url      *url.URL
	artifact distribution.Reference
}

// isLocal reports whether the binary is a file on your machine.
func (l location) isLocal() bool { return l.path != "" }

// name returns the location's name in messages.
func (l location) name() string {
	switch {
	case l.isLocal():
		return l.path
	case l.url != nil:
		return shown(l.url)
	}
	return l.artifact.String()
}

// IsLocal reports whether a sourceURL names a file on your machine.
func IsLocal(sourceURL string) bool {
	scheme, _, ok := cutScheme(sourceURL)
	return !ok || scheme == "file"
}

// IsSet reports whether a sourceURL names a set of binaries in a registry.
func IsSet(sourceURL string) bool {
	scheme, _, ok := cutScheme(sourceURL)
	return ok && (scheme == distribution.Scheme || scheme == distribution.PlainScheme)
}

// LocalPath returns the path of the requested file on your machine. local is false if
// the request is a download.
func (r Request) LocalPath() (path string, local bool, err error) {
	where, err := locate(r)
	return where.path, err == nil && where.isLocal(), err
}

func locate(request Request) (location, error) {
	if request.URL == "" {
		return location{}, errors.New("sourceURL is empty: give a path, file://, http(s):// or oci:// URL")
	}
	scheme, rest, ok := cutScheme(request.URL)
	switch {
	case !ok:
		return location{path: filepath.Clean(request.URL)}, nil
	case scheme == "file":
		path, err := filePath(rest, runtime.GOOS)
		if err != nil {
			return location{}, fmt.Errorf("sourceURL %s: %w", request.URL, err)
		}
		return location{path: path}, nil
	case scheme == "http" || scheme == "https":
		u, err := url.Parse(request.URL)
		if err != nil || u.Host == "" {
			// err would repeat the URL with its password
			return location{}, errors.New("sourceURL is not a valid URL: write it as https://host/path/file.exe")
		}
		return location{url: u}, nil
	case IsSet(request.URL):
		reference, err := distribution.ParseReference(request.URL)
		if err != nil {
			return location{}, fmt.Errorf("sourceURL: %w", err)
		}
		return location{artifact: reference}, nil
	}
	return location{}, fmt.Errorf("sourceURL %s: %s:// is not supported: use a path, file://, http://, https:// or oci://",
		request.URL, scheme)
}

// cutScheme splits scheme://rest. A single letter before the colon is a drive, not a
// scheme.
func cutScheme(text string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(text, "://")
	if !ok || len(scheme) < 2 || strings.ContainsAny(scheme, `/\`) {
		return "", "", false
	}
	return strings.ToLower(scheme), rest, true
}

// filePath returns the path that the URL file://rest names on the operating system goos. It
// supports file:///k/x, file:///C:/k/x, file://C:/k/x, file://localhost/k/x and
// file://server/share/x.
func filePath(rest, goos string) (string, error) {
	path, err := url.PathUnescape(strings.ReplaceAll(rest, `\`, "/"))
	if err != nil {
		return "", fmt.Errorf("%w: write %% as %%25", err)
	}
	if after, ok := strings.CutPrefix(path, "localhost/"); ok {
		path = "/" + after
	}
	windows := goos == "windows"
	switch {
	case hasDrive(strings.TrimPrefix(path, "/")):
		if !windows {
			return "", errors.New("a path with a drive letter exists only on Windows")
		}
		return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", `\`), nil
	case strings.HasPrefix(path, "/"):
		if windows {
			return strings.ReplaceAll(path, "/", `\`), nil
		}
		return path, nil
	case path == "":
		return "", errors.New("the path is missing")
	case windows:
		return `\\` + strings.ReplaceAll(path, "/", `\`), nil
	}
	return "", fmt.Errorf("%q would be a server's name: write file:/// and an absolute path, or just the path",
		strings.SplitN(path, "/", 2)[0])
}

func hasDrive(path string) bool {
	if len(path) < 3 || path[1] != ':' || path[2] != '/' {
		return false
	}
	letter := path[0] | 0x20
	return 'a' <= letter && letter <= 'z'
}

// shown returns a URL for messages. It omits the password and the query, which may
// contain tokens.
func shown(u *url.URL) string {
	bare := *u
	bare.User, bare.RawQuery, bare.Fragment = nil, "", ""
	return bare.String()
}
