package cli

import (
	"github.com/swdt-dev/swdt/internal/blobs"
	"github.com/swdt-dev/swdt/internal/transfer"
)

// depot is what all pushes of this run share. Without a cache folder whole files
// are sent, which is slower and nothing worse.
func (s *session) depot() *transfer.Depot {
	store, err := blobs.OpenDefault()
	if err != nil {
		s.story.Node("").Debug("sending whole files: %v", err)
		return nil
	}
	return transfer.NewDepot(store)
}
