package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// distinct returns the different words, sorted, so that an answer does not depend on how many objects
// a node happens to have.
func distinct(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}

// runsDefender is the answer whether the antivirus of Windows watches the node.
const runsDefender = "Microsoft Defender runs"

// tryServices looks at the services of Windows that swdt depends on.
func tryServices(ctx context.Context, t *trial) error {
	list, err := t.node.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return err
	}
	var states []string
	found := map[string]bool{}
	defender := false
	for _, s := range list.GetServices() {
		running := s.GetState() == agentv1.ServiceState_SERVICE_STATE_RUNNING
		defender = defender || running && strings.EqualFold(s.GetName(), "WinDefend")
		states = append(states, word.Of(s.GetState()))
		found[strings.ToLower(s.GetName())] = true
		if running && s.GetPid() == 0 {
			return fmt.Errorf("the service %s runs without a process", s.GetName())
		}
	}
	t.answer("states", distinct(states))
	t.answer(runsDefender, defender)
	if !slices.Contains(states, word.Of(agentv1.ServiceState_SERVICE_STATE_RUNNING)) {
		return fmt.Errorf("of %d services, none runs", len(states))
	}
	for _, name := range []string{
		"RpcSs", "EventLog", "TermService", "sshd", "containerd", "kubelet", "hns", "vmcompute",
	} {
		t.answer("has "+name, found[strings.ToLower(name)])
	}
	_, err = t.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "swdt-no-such-service"})
	return expectError("a look at a service that does not exist", err, fault.ErrNoService)
}

// maxClockStep is how far an event may be later than the node's clock, which the node may set back.
const maxClockStep = time.Hour

const hasEvents = "has events"

// tryEvents reads the last events of the channel System.
func tryEvents(ctx context.Context, t *trial) error {
	all, err := t.events(ctx, "System")
	if err != nil {
		return err
	}
	facts, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	t.answer(hasEvents, len(all) > 0)
	if t.real && len(all) == 0 {
		return errors.New("the System log of a real Windows has no event")
	}
	var record uint64
	for _, e := range all {
		switch {
		case e.Record <= record:
			return fmt.Errorf("the record %d comes after the record %d", e.Record, record)
		case e.Provider == "" || e.ID < 0:
			return fmt.Errorf("the record %d has the provider %q and the id %d", e.Record, e.Provider, e.ID)
		case e.Time.After(facts.GetTime().AsTime().Add(maxClockStep)):
			return fmt.Errorf("the record %d of %s was logged in the future: at %s, by a clock that shows %s",
				e.Record, e.Provider, e.Time.UTC(), facts.GetTime().AsTime())
		}
		record = e.Record
	}
	return t.longQuery(ctx)
}

const longQueryRefused = "a query of 21 expressions is refused"

// longQuery asks for 21 IDs of events in one query.
func (t *trial) longQuery(ctx context.Context) error {
	ids := make([]string, 21)
	for i := range ids {
		ids[i] = fmt.Sprintf("EventID=%d", i+1)
	}
	result, err := t.run(ctx, "", "wevtutil", "qe", "System", "/c:1",
		"/q:*[System[("+strings.Join(ids, " or ")+")]]")
	if err == nil {
		t.answer(longQueryRefused, result.code != 0)
	}
	return err
}

// tryHNS reads the Host Network Service.
func tryHNS(ctx context.Context, t *trial) error {
	state, err := hns.Read(ctx, t.node.Compute)
	if errors.Is(err, fault.ErrNotSupported) {
		return impossible("the node has no Host Network Service: %v", err)
	}
	if err != nil {
		return err
	}
	var types []string
	for _, network := range state.Networks {
		types = append(types, network.Type)
	}
	t.answer("types of networks", distinct(types))
	for _, endpoint := range state.Endpoints {
		if _, ok := state.Network(endpoint.Network); !ok {
			return fmt.Errorf("the endpoint %s is in the network %s, which is not listed", endpoint.ID, endpoint.Network)
		}
	}
	return nil
}

// tryHCS reads the Host Compute Service.
func tryHCS(ctx context.Context, t *trial) error {
	systems, err := hcs.List(ctx, t.node.Compute)
	if errors.Is(err, fault.ErrNotSupported) {
		return impossible("the node has no Host Compute Service: %v", err)
	}
	if err != nil {
		return err
	}
	var types, states []string
	for _, s := range systems {
		if s.ID == "" {
			return errors.New("a compute system has no ID")
		}
		types, states = append(types, s.Type), append(states, s.State)
	}
	t.answer("types of systems", distinct(types))
	t.answer("states of systems", distinct(states))
	return nil
}

// tryCounters reads the counters of the packet monitor, which works without a capture.
func tryCounters(ctx context.Context, t *trial) error {
	text, err := capture.Counters(ctx, t.node.Processes, true)
	var missing *capture.NoPktmonError
	if errors.As(err, &missing) {
		return impossible("the node has no pktmon")
	}
	if err != nil {
		return err
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	t.answer("counters are JSON", json.Valid([]byte(text)))
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("pktmon's counters are not JSON: %.200q", text)
	}
	return nil
}

// tryFeatures asks for the state of two of Windows' features.
func tryFeatures(ctx context.Context, t *trial) error {
	names := []string{"Containers", "Microsoft-Hyper-V"}
	reply, err := t.node.Features.Get(ctx, &agentv1.GetFeaturesRequest{Names: names})
	if errors.Is(err, fault.ErrNotSupported) || errors.Is(err, fault.ErrNotExist) {
		return impossible("the node reports no features: %v", err)
	}
	if err != nil {
		return err
	}
	if err := expect("the number of features", len(reply.GetFeatures()), len(names)); err != nil {
		return err
	}
	for i, f := range reply.GetFeatures() {
		t.answer(names[i], word.Of(f.GetState()))
		if err := expect("the name of a feature", strings.EqualFold(f.GetName(), names[i]), true); err != nil {
			return err
		}
	}
	return nil
}

// tryListeners looks for listening ports.
func tryListeners(ctx context.Context, t *trial) error {
	reply, err := t.node.Network.Listeners(ctx, &agentv1.ListenersRequest{})
	if errors.Is(err, fault.ErrNotSupported) {
		return impossible("the node does not list its ports: %v", err)
	}
	if err != nil {
		return err
	}
	named := false
	for _, l := range reply.GetListeners() {
		if l.GetPort() == 0 || l.GetPort() > 65535 {
			return fmt.Errorf("a process listens on port %d", l.GetPort())
		}
		named = named || l.GetProcess() != ""
	}
	t.answer("processes of ports are known", named)
	if t.real && len(reply.GetListeners()) == 0 {
		return errors.New("no process of a real Windows listens on a port")
	}
	return nil
}

// tryRuntime asks the container runtime for its version.
func tryRuntime(ctx context.Context, t *trial) error {
	version, err := t.node.Network.CRIVersion(ctx, &agentv1.CRIVersionRequest{Pipe: t.document.RuntimePipe()})
	if errors.Is(err, fault.ErrNotExist) {
		return impossible("no container runtime serves the node's pipe")
	}
	if err != nil {
		return err
	}
	t.answer("runtime", version.GetRuntimeName())
	t.answer("CRI", version.GetRuntimeApiVersion())
	if version.GetRuntimeName() == "" || version.GetRuntimeVersion() == "" {
		return fmt.Errorf("the runtime reports the name %q and the version %q", version.GetRuntimeName(),
			version.GetRuntimeVersion())
	}
	return nil
}
