package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// The JSON output contains these words.
func TestEveryValueOnTheWireHasItsWord(t *testing.T) {
	results, actions := map[string]string{}, map[string]Action{}
	for number, name := range agentv1.SwapResult_name {
		results[name] = word.Of(agentv1.SwapResult(number))
	}
	for number, name := range agentv1.SwapAction_name {
		actions[name] = Action(word.Of(agentv1.SwapAction(number)))
	}
	if diff := cmp.Diff(map[string]string{
		"SWAP_RESULT_UNKNOWN": "", "SWAP_RESULT_COMMITTED": "committed",
		"SWAP_RESULT_ROLLED_BACK": "rolledBack", "SWAP_RESULT_FAILED": "failed",
	}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Action{
		"SWAP_ACTION_UNKNOWN": "", "SWAP_ACTION_REPLACED": "replaced", "SWAP_ACTION_CREATED": "created",
		"SWAP_ACTION_RESTARTED": "restarted", "SWAP_ACTION_ROLLED_BACK": "rolledBack", "SWAP_ACTION_FAILED": "failed",
	}, actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}
