package onnode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// maxMessage limits a message, in bytes, as the schema does in characters.
const maxMessage = 2000

// report writes the status of the NodeState, unless it says the same already.
func (w *order) report(ctx context.Context, phase fleetv1.Phase, message string) error {
	status := fleetv1.NodeStateStatus{
		Hash: w.state.Spec.Hash, Action: w.state.Spec.Action, Phase: phase, Journal: w.journal,
		Message: shortened(message), Since: metav1.NewMicroTime(time.Now()),
	}
	if same := w.state.Status; same.Hash == status.Hash && same.Action == status.Action && same.Phase == phase &&
		same.Message == status.Message {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"hash": status.Hash, "action": status.Action, "phase": status.Phase, "journal": status.Journal,
		"message": status.Message, "since": status.Since,
	}})
	if err != nil {
		return fmt.Errorf("report %s: %w", phase, err)
	}
	_, err = w.Client.Resource(fleetv1.StateResource()).Patch(ctx, w.state.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "swdt-node"}, "status")
	if err != nil {
		return fmt.Errorf("report %s: %w", phase, err)
	}
	w.state = w.state.DeepCopy()
	w.state.Status = status
	return nil
}

func shortened(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
}
