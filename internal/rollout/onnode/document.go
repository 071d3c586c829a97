package onnode

import (
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/rollout/content"
)

// document returns the content of the order as the node file of this node.
func (w *order) document() (config.Document, error) {
	return content.Document(w.Node, w.state.Spec.Content)
}
