package golden

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/media"
)

const (
	hashesFile = "hashes.json"
	maxHashes  = 100 // in the file
)

// hashed is a file as it was when it was hashed.
type hashed struct {
	Size   int64     `json:"size"`
	Time   time.Time `json:"time"` // time of the file's last change
	SHA256 string    `json:"sha256"`
}

// hash returns the hash of an ISO. Since hashing takes about a minute, it stores the result, and
// uses it again as long as neither the size nor the time of the file changes.
func (s *Images) hash(ctx context.Context, file *os.File, r ui.Reporter) (media.Sum, error) {
	info, err := file.Stat()
	if err != nil {
		return media.Sum{}, err
	}
	all := s.hashes()
	if known, ok := all[file.Name()]; ok && known.Size == info.Size() && known.Time.Equal(info.ModTime()) {
		return media.Sum{SHA256: known.SHA256, Known: media.Known(known.SHA256)}, nil
	}
	progress := r.Transfer("hashing "+filepath.Base(file.Name()), info.Size())
	sum, err := media.Hash(ctx, file, info.Size(), progress)
	progress.End()
	if err != nil {
		return media.Sum{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if len(all) >= maxHashes {
		clear(all)
	}
	all[file.Name()] = hashed{Size: info.Size(), Time: info.ModTime(), SHA256: sum.SHA256}
	if err := writeJSON(filepath.Join(s.root, hashesFile), all); err != nil {
		r.Debug("the hash is not remembered: %v", err)
	}
	return sum, nil
}

// hashes returns the stored hashes. The map is empty if the file cannot be used.
func (s *Images) hashes() map[string]hashed {
	all := map[string]hashed{}
	file, err := os.Open(filepath.Join(s.root, hashesFile))
	if err != nil {
		return all
	}
	defer file.Close()
	if json.NewDecoder(io.LimitReader(file, maxManifest)).Decode(&all) != nil || all == nil {
		return map[string]hashed{}
	}
	return all
}
