package word_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// words returns the words of all values of an enum but the first, in the order of their numbers.
func words(enum protoreflect.EnumType) (all []string) {
	for i := 1; i < enum.Descriptor().Values().Len(); i++ {
		all = append(all, word.Of(enum.New(protoreflect.EnumNumber(i))))
	}
	return all
}

// JSON output, journals and the record of a join hold these words: they do not change.
func TestWords(t *testing.T) {
	got := map[string][]string{}
	for _, file := range []protoreflect.FileDescriptor{agentv1.File_agent_proto, agentv1.File_capture_proto,
		agentv1.File_hns_proto} {
		for i := range file.Enums().Len() {
			enum, err := protoregistry.GlobalTypes.FindEnumByName(file.Enums().Get(i).FullName())
			if err != nil {
				t.Fatal(err)
			}
			got[string(enum.Descriptor().Name())] = words(enum)
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"ServiceState": {"stopped", "startPending", "running", "stopPending", "continuePending", "pausePending", "paused"},
		"StartType":    {"auto", "manual", "disabled"},
		"Simulation":   {"wine", "simulated"},
		"TailEvent":    {"end", "replaced", "truncated", "lost"},
		"FeatureState": {"enabled", "disabled", "enablePending", "disablePending"},
		"RecoveryKind": {"restart", "reboot", "command"},
		"ReachOutcome": {"reached", "refused", "timedOut", "noRoute", "nameNotFound", "failed"},
		"SwapState": {"prepared", "stopping", "swapping", "swapped", "starting", "checking", "committing", "rollingBack",
			"resumed", "gaveUp", "done", "waiting"},
		"SwapResult":  {"committed", "rolledBack", "failed"},
		"SwapAction":  {"replaced", "created", "restarted", "rolledBack", "failed"},
		"ComputeKind": {"networks", "endpoints", "namespaces", "loadbalancers", "systems"},
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnknown(t *testing.T) {
	for value, want := range map[agentv1.SwapState]string{
		agentv1.SwapState_SWAP_STATE_UNKNOWN: "", 99: "", -1: "", agentv1.SwapState_SWAP_STATE_DONE: "done",
	} {
		if got := word.Of(value); got != want {
			t.Errorf("the word of %d is %q, want %q", value, got, want)
		}
	}
	for text, want := range map[string]agentv1.SwapState{
		"": 0, "unknown": 0, "Done": 0, "SWAP_STATE_DONE": 0, "state 9": 0, "done": agentv1.SwapState_SWAP_STATE_DONE,
	} {
		if got := word.Value[agentv1.SwapState](text); got != want {
			t.Errorf("the value of %q is %v, want %v", text, got, want)
		}
	}
}
