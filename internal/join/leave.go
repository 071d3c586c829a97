package join

import (
	"context"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (s *kubeadmJoin) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	if !r.Joining && !r.Joined {
		left, err := s.leftNode(ctx, s.node)
		if err != nil || left == "" {
			return plan.Change{}, err
		}
		return plan.Change{Needed: true, Summary: "delete the Node " + left}, nil
	}
	// In a different cluster, a Node of this name belongs to another machine.
	if err := s.sameCluster(ctx, s.node); err != nil {
		return plan.Change{}, err
	}
	summary := "leave the cluster: kubeadm reset, stop kubelet, remove their files"
	if s.reset.DeleteNode {
		summary += ", delete the Node " + r.Node
	}
	return plan.Change{Needed: true, Summary: summary}, nil
}

// leftNode returns the name of a Node that an earlier reset left in the cluster and that this reset
// must delete. Such a Node belongs to this machine, and this machine no longer has a kubelet. If
// there is no such Node, leftNode returns "".
func (s *kubeadmJoin) leftNode(ctx context.Context, n *node.Node) (string, error) {
	if !s.reset.DeleteNode {
		return "", nil
	}
	if is, err := service(ctx, n, kubeletName); err != nil || is != nil {
		return "", err
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return "", err
	}
	left, err := s.options.Cluster.Node(ctx, name)
	if err != nil || !left.Exists || left.SystemUUID == "" {
		return "", err
	}
	machine, err := n.SystemUUID(ctx)
	if same, _ := cluster.SameMachine(machine, left.SystemUUID); err != nil || !same {
		return "", nil // the machine does not report its UUID, or the Node is another machine
	}
	return name, nil
}

func (s *kubeadmJoin) Undo(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	rec, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if !rec.Joining && !rec.Joined {
		left, err := s.leftNode(ctx, s.node)
		if err == nil && left != "" {
			_, err = s.options.Cluster.DeleteNode(ctx, left)
		}
		return plan.Outcome{}, err
	}
	// kubeadm stops kubelet itself. If kubelet had already stopped, kubeadm would wait in vain for
	// 10 seconds.
	if err := s.kubeadmReset(ctx, s.node, r); err != nil {
		return plan.Outcome{}, err
	}
	if err := stop(ctx, s.node, kubeletName); err != nil {
		return plan.Outcome{}, err
	}
	if err := s.clear(ctx, s.node); err != nil {
		return plan.Outcome{}, err
	}
	if c := s.options.Cluster; c != nil {
		if _, err := c.SweepTokens(ctx, rec.Node); err != nil {
			return plan.Outcome{}, err
		}
		if s.reset.DeleteNode {
			if _, err := c.DeleteNode(ctx, rec.Node); err != nil {
				return plan.Outcome{}, err
			}
		}
	}
	s.drained = ""
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.Joining, r.Joined = false, false })
}

// kubeadmReset runs kubeadm reset, which removes the containers. It does nothing if kubeadm does
// not exist, or if containerd does not run. If kubeadm fails, kubeadmReset only warns, since the
// later steps of the reset detect any remains.
func (s *kubeadmJoin) kubeadmReset(ctx context.Context, n *node.Node, r ui.Reporter) error {
	there, err := smallfile.Exists(ctx, n, kubeadmExe)
	if err != nil || !there {
		return err
	}
	is, err := service(ctx, n, containerdName)
	if err != nil || is == nil || !running(is) {
		return err
	}
	output := &kubeadmOutput{reporter: r}
	code, err := runKubeadm(ctx, n, output, "reset", "--force", "--cri-socket", kubeletargs.RuntimeEndpoint)
	if err != nil {
		return err
	}
	if code != 0 {
		r.Warn("kubeadm reset ended with exit code %d; continuing: %s", code, output.last())
	}
	return nil
}
