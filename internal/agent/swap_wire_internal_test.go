package agent

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/swap"
)

// Journals that another version of the agent wrote hold words: they do not change.
func TestOutcomesInJournalsBecomeEnums(t *testing.T) {
	none := durationpb.New(0)
	for text, want := range map[string]*agentv1.SwapOutcome{
		`{"result":"committed","components":[{"name":"a","action":"replaced"},{"name":"b","action":"created"},` +
			`{"name":"c","action":"restarted"}]}`: {
			Result: agentv1.SwapResult_SWAP_RESULT_COMMITTED, Down: none,
			Components: []*agentv1.ComponentOutcome{
				{Name: "a", Action: agentv1.SwapAction_SWAP_ACTION_REPLACED, Down: none, Healthy: none},
				{Name: "b", Action: agentv1.SwapAction_SWAP_ACTION_CREATED, Down: none, Healthy: none},
				{Name: "c", Action: agentv1.SwapAction_SWAP_ACTION_RESTARTED, Down: none, Healthy: none},
			},
		},
		`{"result":"rolledBack","message":"why","failedComponent":"a","components":[{"name":"a","action":"failed"},` +
			`{"name":"b","action":"rolledBack"}]}`: {
			Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK, Down: none, Message: "why", FailedComponent: "a",
			Components: []*agentv1.ComponentOutcome{
				{Name: "a", Action: agentv1.SwapAction_SWAP_ACTION_FAILED, Down: none, Healthy: none},
				{Name: "b", Action: agentv1.SwapAction_SWAP_ACTION_ROLLED_BACK, Down: none, Healthy: none},
			},
		},
		`{"result":"failed"}`: {Result: agentv1.SwapResult_SWAP_RESULT_FAILED, Down: none},
	} {
		var outcome swap.Outcome
		if err := json.Unmarshal([]byte(text), &outcome); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, swapOutcome(outcome), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
