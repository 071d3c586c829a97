package thismachine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/ui"
)

// stage is the folder in which the agent waits for its installation. It implements carrier.Stage.
type stage struct {
	folder string
	staged string // the path of the agent's file; "" before Put
}

// HasAgent implements carrier.Stage.
func (s *stage) HasAgent(_ context.Context, path, hash string) (bool, error) {
	found, err := hashOf(path)
	return err == nil && found == hash, nil
}

// Put implements carrier.Stage.
func (s *stage) Put(_ context.Context, agent agentbin.Agent, _ ui.Reporter) (program string, err error) {
	const attempt = "put the agent on this machine"
	from, err := agent.Open()
	if err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	defer from.Close()
	path := filepath.Join(s.folder, carrier.StagedName())
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	s.staged = path
	s.removeStale()
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	found, err := hashOf(path)
	if err == nil && found != agent.Hash {
		err = fmt.Errorf("read it back: it has the hash %.12s, not %.12s; try again", found, agent.Hash)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	return path, nil
}

// removeStale removes the files of programs that were killed before Close. A file that cannot be removed now is
// removed by a later Put.
func (s *stage) removeStale() {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			files = append(files, info)
		}
	}
	for _, name := range carrier.StaleStaged(files) {
		_ = os.Remove(filepath.Join(s.folder, name))
	}
}

// Vanished implements carrier.Stage.
func (s *stage) Vanished(_ context.Context, program string) bool {
	_, err := os.Lstat(program)
	return errors.Is(err, fs.ErrNotExist)
}

// Close implements carrier.Stage.
func (s *stage) Close() {
	if s.staged != "" {
		_ = os.Remove(s.staged) // best effort: the file is small, and nothing starts it
	}
}

func hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
