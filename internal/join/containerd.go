package join

import (
	"context"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// containerdService runs containerd as a service that answers on its pipe.
type containerdService struct{ *joining }

// answersIn is how long containerd may take to answer CRI.
const answersIn = time.Minute

func (s *containerdService) Name() string      { return stepContainerdService }
func (s *containerdService) Follows() []string { return []string{stepRoots, stepContainerdConfig} }
func (s *containerdService) FollowUp() string {
	return "restart containerd if its configuration changed"
}

// wanted returns the registration that `containerd --register-service` makes, but with recovery actions that never end.
func (s *containerdService) wanted() *agentv1.ServiceConfig {
	return &agentv1.ServiceConfig{
		Name: containerdName, DisplayName: "containerd", Description: "Container runtime",
		CommandLine: commandline.Join(containerdExe, "--run-service", "--config", containerdToml,
			"--log-file", s.spec.Containerd.LogFile, "--log-level", s.spec.Containerd.LogLevel),
		StartType: agentv1.StartType_START_TYPE_AUTO,
		Recovery:  containerdRecovery(),
	}
}

func (s *containerdService) Plan(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	is, change, err := s.compareRegistration(ctx, s.node, r, s.wanted())
	if err != nil {
		return plan.Change{}, err
	}
	switch {
	case change.Needed && running(is):
		change.Summary += ", and restart it"
	case change.Needed:
	case r.pending(containerdName):
		change = plan.Change{Needed: true, Summary: "restart containerd, whose configuration changed"}
	case !running(is):
		change = plan.Change{Needed: true, Summary: "start containerd"}
	}
	return change, nil
}

func (s *containerdService) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	if err := s.noteData(ctx, s.node); err != nil {
		return plan.Outcome{}, err
	}
	if err := s.register(ctx, s.node, s.wanted()); err != nil {
		return plan.Outcome{}, err
	}
	rec, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if rec.pending(containerdName) {
		r.Step("restarting containerd")
		err = restart(ctx, s.node, containerdName)
	} else {
		r.Step("starting containerd")
		err = start(ctx, s.node, containerdName)
	}
	if err == nil {
		err = s.awaitCRI(ctx, s.node, r)
	}
	if err != nil {
		return plan.Outcome{}, s.failed(ctx, s.node, stepContainerdService, containerdName, err)
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.dropRestart(containerdName) })
}

// noteData records that containerd's data folder has only containerd's data. If the folder
// existed before, noteData records nothing.
func (s *containerdService) noteData(ctx context.Context, n *node.Node) error {
	there, err := smallfile.Exists(ctx, n, containerdData)
	if err != nil || there {
		return err
	}
	return update(ctx, n, func(r *record) {
		if !r.folder(containerdData) {
			r.Folders = append(r.Folders, folderRecord{Path: containerdData, Data: true})
		}
	})
}

// awaitCRI waits until containerd answers on its pipe.
func (s *containerdService) awaitCRI(ctx context.Context, n *node.Node, r ui.Reporter) error {
	return waitFor("containerd to answer on its pipe", answersIn, r, func(waiting context.Context) error {
		version, err := n.Network.CRIVersion(waiting, &agentv1.CRIVersionRequest{Pipe: v1alpha1.ContainerdPipe})
		if err == nil {
			r.Debug("%s %s answers CRI", version.GetRuntimeName(), version.GetRuntimeVersion())
			return nil
		}
		if lost(err) {
			return wait.Stop(fmt.Errorf("wait for containerd to answer on its pipe: %w", err))
		}
		// The state is read with ctx, since the limit of waiting may have just been reached.
		is, lookErr := service(ctx, n, containerdName)
		if lookErr == nil && is != nil && stopped(is) {
			return wait.Stop(fmt.Errorf("containerd ended before it answered on its pipe: %s", exitOf(is)))
		}
		return err
	}).Wait(ctx)
}

func (s *containerdService) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	change := serviceUndoChange(r, containerdName)
	if change.Needed && keepsOurs(r) {
		change.Summary = "remove all pods and images; " + change.Summary
	}
	return change, err
}

func (s *containerdService) Undo(ctx context.Context, reporter ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err == nil && keepsOurs(r) {
		err = clearContainers(ctx, s.node, reporter)
	}
	if err != nil {
		return plan.Outcome{}, err
	}
	outcome := plan.Outcome{}
	there, err := smallfile.Exists(ctx, s.node, containerdData)
	if err != nil {
		return plan.Outcome{}, err
	}
	if there && !keepsOurs(r) {
		outcome.Message = s.reset.keeps("it was there before the join, and has the images of pods", containerdData)
	}
	return outcome, unregister(ctx, s.node, containerdName)
}

func stopped(s *agentv1.ServiceReply) bool {
	return s.GetStatus().GetState() == agentv1.ServiceState_SERVICE_STATE_STOPPED
}

func exitOf(s *agentv1.ServiceReply) string {
	status := s.GetStatus()
	const serviceSpecific = 1066
	if status.GetExitCode() == serviceSpecific {
		return fmt.Sprintf("its own exit code %d", status.GetSpecificExitCode())
	}
	return fmt.Sprintf("exit code %d", status.GetExitCode())
}
