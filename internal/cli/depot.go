package cli

import (
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
)

// depot returns the cache that all pushes of this run share. Without a cache folder
// swdt sends whole files, which is slower and has no other drawback.
func (s *session) depot() *transfer.Depot {
	store, err := blobs.OpenDefault()
	if err != nil {
		s.story.Node("").Debug("sending whole files: %v", err)
		return nil
	}
	return transfer.NewDepot(store)
}
