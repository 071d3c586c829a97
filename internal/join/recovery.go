package join

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// kubeletRecovery lets the SCM restart kubelet for ever, since nothing else does: after a crash for lack of memory,
// with a containerd that is slow after a boot, or with a bad file that is corrected hours later. The delays grow, so
// that a kubelet that cannot run does not fill the event log. The last delay and the reset period are those of AKS'
// nodes (Azure/AgentBaker, staging/cse/windows/configfunc.ps1, "restart/60000 … reset= 900").
//
// The failure flag stays off: a kubelet that fails ends without reporting its stop, and one that was asked to stop
// must not come back.
func kubeletRecovery() *agentv1.Recovery {
	return endless(15*time.Minute, 10*time.Second, 20*time.Second, 40*time.Second, time.Minute)
}

// containerdRecovery has the delays and the reset period of `containerd --register-service`, whose list ends after two
// restarts a day. This one does not end, since kubelet cannot run without containerd.
func containerdRecovery() *agentv1.Recovery {
	return endless(24*time.Hour, 15*time.Second, 15*time.Second, time.Minute)
}

// endless returns recovery actions whose last restart is repeated for ever.
func endless(reset time.Duration, restarts ...time.Duration) *agentv1.Recovery {
	r := &agentv1.Recovery{Reset_: durationpb.New(reset), RepeatLast: true}
	for _, after := range restarts {
		r.Restarts = append(r.Restarts, durationpb.New(after))
	}
	return r
}

func sameRecovery(a, b *agentv1.Recovery) bool {
	return a.GetReset_().AsDuration() == b.GetReset_().AsDuration() && a.GetRepeatLast() == b.GetRepeatLast() &&
		a.GetOnErrorExit() == b.GetOnErrorExit() && len(a.GetActions())+len(b.GetActions()) == 0 &&
		slices.EqualFunc(a.GetRestarts(), b.GetRestarts(), func(x, y *durationpb.Duration) bool {
			return x.AsDuration() == y.AsDuration()
		})
}

// recoveryRecord has the recovery actions of a service before the join.
type recoveryRecord struct {
	RestartSeconds []float64 `json:"restartSeconds,omitempty"`
	ResetSeconds   float64   `json:"resetSeconds,omitempty"` // 0: never
	RepeatLast     bool      `json:"repeatLast,omitempty"`
	OnErrorExit    bool      `json:"onErrorExit,omitempty"`
	// Actions are all actions, if one of them is not a restart: see platform.Recovery.
	Actions []recoveryAction `json:"actions,omitempty"`
}

type recoveryAction struct {
	Kind         string  `json:"kind"`
	AfterSeconds float64 `json:"afterSeconds,omitempty"`
}

func recoveryBefore(r *agentv1.Recovery) *recoveryRecord {
	if r == nil {
		return nil
	}
	before := &recoveryRecord{ResetSeconds: r.GetReset_().AsDuration().Seconds(), RepeatLast: r.GetRepeatLast(),
		OnErrorExit: r.GetOnErrorExit()}
	for _, after := range r.GetRestarts() {
		before.RestartSeconds = append(before.RestartSeconds, after.AsDuration().Seconds())
	}
	for _, action := range r.GetActions() {
		before.Actions = append(before.Actions, recoveryAction{word.Of(action.GetKind()),
			action.GetAfter().AsDuration().Seconds()})
	}
	return before
}

func (r *recoveryRecord) message() *agentv1.Recovery {
	if r == nil {
		return nil
	}
	seconds := func(s float64) *durationpb.Duration { return durationpb.New(time.Duration(s * float64(time.Second))) }
	message := &agentv1.Recovery{Reset_: seconds(r.ResetSeconds), RepeatLast: r.RepeatLast, OnErrorExit: r.OnErrorExit}
	for _, after := range r.RestartSeconds {
		message.Restarts = append(message.Restarts, seconds(after))
	}
	for _, action := range r.Actions {
		message.Actions = append(message.Actions, &agentv1.RecoveryAction{
			Kind: word.Value[agentv1.RecoveryKind](action.Kind), After: seconds(action.AfterSeconds)})
	}
	return message
}
