package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
)

// cache is a folder that all runs of swdt share:
//
//	blobs/                    complete files by their SHA-256: see package blobs
//	urls/<hash of URL>.json   the URL's last result: validators and sha256
//	urls/<hash of URL>.part   the bytes of an interrupted download
//	urls/<hash of URL>.lock   held by the only swdt that is downloading the URL
type cache struct {
	folder string
	blobs  *blobs.Store
}

func openCache(folder string) (cache, error) {
	if folder == "" {
		user, err := localfile.CacheFolder()
		if err != nil {
			return cache{}, fmt.Errorf("find the cache folder: %w: set XDG_CACHE_HOME (LocalAppData on Windows)", err)
		}
		folder = filepath.Join(user, "swdt")
	}
	store, err := blobs.Open(filepath.Join(folder, "blobs"), 0)
	if err != nil {
		return cache{}, err
	}
	if err := os.MkdirAll(filepath.Join(folder, "urls"), 0o700); err != nil {
		return cache{}, fmt.Errorf("make the cache folder: %w", err)
	}
	return cache{folder, store}, nil
}

// verifiedBlob returns the path of the blob with this hash, if it exists and is whole.
func (c cache) verifiedBlob(ctx context.Context, hash string) (string, bool) {
	path, err := c.blobs.Path(ctx, hash)
	return path, err == nil
}

// record is the stored state of a URL in the cache.
type record struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	// SHA256 is the hash of the complete file; empty while there is only a part.
	SHA256 string `json:"sha256,omitempty"`
	// Total is the size of the complete file; 0 if the server did not report it.
	Total int64 `json:"total,omitempty"`
}

// slot is a URL's place in the cache. It holds the URL's lock until release.
type slot struct {
	cache   cache
	base    string
	release func()
}

// slot waits until no other swdt is downloading the URL, and then locks the URL. It passes waiting
// to Lock.
func (c cache) slot(ctx context.Context, url string, waiting func()) (*slot, error) {
	// a URL may contain secrets, and characters that no file name can have
	sum := sha256.Sum256([]byte(url))
	base := filepath.Join(c.folder, "urls", hex.EncodeToString(sum[:]))
	release, err := Lock(ctx, base+".lock", waiting)
	if err != nil {
		return nil, err
	}
	return &slot{cache: c, base: base, release: release}, nil
}

// Lock waits until no other swdt on this machine holds the lock file, and then holds it until
// release. If the wait takes more than a second, Lock calls waiting.
func Lock(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if ctx.Err() != nil { // after ctx has ended, the lock file must not be made
		return nil, context.Cause(ctx)
	}
	type locked struct {
		release func()
		err     error
	}
	turn := make(chan locked, 1)
	go func() {
		release, err := lockedfile.MutexAt(path).Lock()
		turn <- locked{release, err}
	}()
	abandon := func() { // waiting for the lock cannot be cancelled, so a goroutine goes on waiting
		if l := <-turn; l.err == nil {
			l.release()
		}
	}
	notice := time.AfterFunc(time.Second, waiting)
	defer notice.Stop()
	select {
	case l := <-turn:
		if l.err != nil {
			return nil, fmt.Errorf("lock the cache: %w", l.err)
		}
		return l.release, nil
	case <-ctx.Done():
		go abandon()
		return nil, context.Cause(ctx)
	}
}

func (s *slot) part() string { return s.base + ".part" }

// load returns the record of the URL. If there is no record, or an invalid one, it
// returns the zero record.
func (s *slot) load() record {
	var r record
	data, err := os.ReadFile(s.base + ".json")
	if err != nil || json.Unmarshal(data, &r) != nil {
		return record{}
	}
	return r
}

func (s *slot) save(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the cache's index: %w", err)
	}
	if err := localfile.Replace(s.base+".json", data); err != nil {
		return fmt.Errorf("write the cache's index: %w", err)
	}
	return nil
}

// partSize returns the size of the part of an interrupted download, or 0 if there is no part.
func (s *slot) partSize() int64 {
	info, err := os.Stat(s.part())
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *slot) dropPart() error {
	if err := os.Remove(s.part()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a cut download: %w", err)
	}
	return nil
}
