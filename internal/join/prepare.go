package join

import (
	"context"
	"slices"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
)

// Prepare returns the steps of a join that need no cluster, for a machine that becomes an image.
// After these steps, containerd runs, and the service kubelet is registered without the name of a
// node. So the machines of the image can join by `swdt join` or by kubeadm. Each step needs all
// previous steps (plan.Options.Ordered). The error is a *config.Error if the node file lacks
// something.
func Prepare(n *node.Node, doc config.Document, o Options) ([]plan.Step, error) {
	if err := ValidatePrepare(doc); err != nil {
		return nil, err
	}
	j := newJoining(n, doc, o)
	j.image = true
	return j.preparation(), nil
}

// ValidatePrepare returns a *config.Error if the node file lacks something that Prepare needs. It
// contacts neither the node nor a cluster.
func ValidatePrepare(doc config.Document) error {
	return problemsOf(doc, func(missing func(field, what, remedy string)) {
		checkVersions(doc.Node.Spec.Kubernetes, missing)
	})
}

// preparation returns the steps before the join itself. The name of a control plane belongs to one
// cluster, so the hosts file of an image gets no entry for that name.
func (j *joining) preparation() []plan.Step {
	containerd, kubernetes := containerdFiles(j), kubernetesFiles(j)
	containerd.beside = kubernetes
	steps := []plan.Step{
		featuresStep(j),
		&folders{j},
		&rootCertificates{j},
		containerd,
		&containerdConfig{j},
		&containerdService{j},
		&crictlConfig{j},
		kubernetes,
		pathStep(j),
	}
	if !j.image {
		steps = append(steps, hostsStep(j), &dynamicPorts{j})
	}
	return append(steps, firewallStep(j), &kubeletConfig{j}, &kubeletService{j})
}

// PauseImage returns the image of pod sandboxes that containerd's config.toml on the node names; ""
// if it names none.
func PauseImage(ctx context.Context, n *node.Node) (string, error) {
	text, err := smallfile.Read(ctx, n, containerdToml)
	if err != nil {
		return "", err
	}
	for _, path := range [][]string{
		{"plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"}, // from 2.0
		{"plugins", "io.containerd.grpc.v1.cri", "sandbox_image"},
	} {
		if image := containerdconfig.Text(text, path...); image != "" {
			return image, nil
		}
	}
	return "", nil
}

// Identity returns the files and folders that make a machine a node of one cluster: the
// configuration that kubeadm writes, and kubelet's certificates.
func Identity() []string {
	return slices.Concat(joinFiles(), []string{kubeletData + `\pki`, kubernetesConfig + `\pki`})
}
