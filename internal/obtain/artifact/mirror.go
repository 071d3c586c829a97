package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/obtain/source"
)

// place is a URL or path where a file may be.
type place string

func (p place) local() bool { return source.IsLocal(string(p)) }

// plain reports whether the place is reached over plain http, where attackers on the network path
// can change the content.
func (p place) plain() bool { return strings.HasPrefix(strings.ToLower(string(p)), "http://") }

// withSuffix returns the place with the given suffix at the end of the file's name. If the place is
// a URL with a query, the query stays at the end of the URL.
func (p place) withSuffix(ending string) place {
	if p.local() {
		return p + place(ending)
	}
	u, err := url.Parse(string(p))
	if err != nil {
		return p + place(ending)
	}
	u.Path, u.RawPath = u.Path+ending, ""
	return place(u.String())
}

// String returns the place for messages. It omits the password and the query, which may
// contain tokens.
func (p place) String() string {
	if p.local() {
		return string(p)
	}
	u, err := url.Parse(string(p))
	if err != nil {
		return "the URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// CheckMirror checks a mirror without contacting it. An empty mirror is valid.
func CheckMirror(mirror string) error {
	switch {
	case mirror == "":
		return nil
	case !source.IsLocal(mirror):
		_, err := mirrorURL(mirror)
		return err
	}
	folder, _, err := source.Request{URL: mirror}.LocalPath()
	if err != nil {
		return err
	}
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: make it, or correct the path", folder)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file: name the folder that has the mirrored files", folder)
	}
	return nil
}

func mirrorURL(mirror string) (*url.URL, error) {
	base, err := url.Parse(mirror)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("it is neither a folder nor an http or https URL: write it as https://host/path")
	}
	return base, nil
}

// places returns the places at which to look for the file of a URL. Without a mirror, the only
// place is the URL itself. With a mirror, there are two places, both in the mirror.
func places(at, mirror string) ([]place, error) {
	if mirror == "" {
		return []place{place(at)}, nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		// err would repeat the URL with its password
		return nil, errors.New("not a valid URL: write it as https://host/path/file.exe")
	}
	host := strings.ReplaceAll(u.Host, ":", "+") // names of files on Windows cannot contain a colon
	deep, flat := path.Join(host, path.Join("/", u.Path)), path.Base(u.Path)
	if source.IsLocal(mirror) {
		folder, _, err := source.Request{URL: mirror}.LocalPath()
		if err != nil {
			return nil, fmt.Errorf("the mirror: %w", err)
		}
		return []place{place(filepath.Join(folder, filepath.FromSlash(deep))), place(filepath.Join(folder, flat))}, nil
	}
	base, err := mirrorURL(mirror)
	if err != nil {
		return nil, fmt.Errorf("the mirror: %w", err)
	}
	return []place{place(base.JoinPath(deep).String()), place(base.JoinPath(flat).String())}, nil
}
