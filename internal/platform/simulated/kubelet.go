package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// kubeletAddress is the address on which a kubelet listens for the API server.
const kubeletAddress = "0.0.0.0:10250"

// checkKubelet returns the error that ends a kubelet before it has reported to the SCM: a flag that
// its version does not support, a label that a kubelet may not set, or a missing or invalid
// configuration (kubernetes v1.36.3, cmd/kubelet/app/server.go and options/options.go, has the texts; CHANGELOG-1.24,
// 1.26 and 1.35 of kubernetes name the removed flags, kubernetes#133779 the last of them; lab/ builds real kubelets).
func (c component) checkKubelet() error {
	_, minor := versionNumbers(c.version)
	for flag, until := range map[string]int{
		"network-plugin": 23, "image-pull-progress-deadline": 23, "log-dir": 25, "logtostderr": 25,
		"pod-infra-container-image": 34,
	} {
		if c.version != unknownVersion && minor > until && c.hasFlag("--"+flag) {
			return fmt.Errorf("failed to parse kubelet flag: unknown flag: --%s", flag)
		}
	}
	if bad := foreignLabels(c.flag("--node-labels")); len(bad) > 0 {
		return fmt.Errorf("failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified "+
			"with --node-labels: %v\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "+
			"(%s) or be in the specifically allowed set (%s)", bad, strings.Join(kubeletapis.KubeletLabelNamespaces(), ", "),
			strings.Join(kubeletapis.KubeletLabels(), ", "))
	}
	return c.checkKubeletConfig()
}

// checkKubeletConfig parses the configuration and the drop-ins that are merged
// over it.
func (c component) checkKubeletConfig() error {
	file := c.flag("--config")
	if file == "" {
		return c.checkGates()
	}
	text, err := c.p.p.m.ReadFile(windowsPath(file))
	if errors.Is(err, fault.ErrNotExist) {
		//lint:ignore ST1005 as the real one says it
		return fmt.Errorf("failed to load kubelet config file, path: %s, error: failed to load Kubelet config file "+
			"%s, error failed to read kubelet config file %q, error: "+
			"open %s: The system cannot find the file specified.", file, file, windowsPath(file), windowsPath(file))
	}
	if err == nil {
		err = checkKubeletYAML(text)
	}
	if err != nil {
		return fmt.Errorf("failed to load kubelet config file, path: %s, error: %w", file, err)
	}
	if err := errors.Join(c.checkConfiguredGates(text), c.checkGates()); err != nil {
		return err
	}
	folder := c.flag("--config-dir")
	if folder == "" {
		return nil
	}
	list, err := filesView{c.p.p}.List(windowsPath(folder))
	if err != nil {
		return fmt.Errorf("failed to merge kubelet configs: failed to walk through kubelet dropin directory %q: %w",
			folder, err)
	}
	for _, dropIn := range list {
		if !strings.HasSuffix(dropIn.Path, ".conf") {
			continue
		}
		if text, err = c.p.p.m.ReadFile(dropIn.Path); err == nil {
			err = checkKubeletYAML(text)
		}
		if err == nil {
			err = c.checkConfiguredGates(text)
		}
		if panicked := (*panicError)(nil); errors.As(err, &panicked) {
			return err
		}
		if err != nil {
			return fmt.Errorf(
				"failed to merge kubelet configs: failed to load kubelet dropin file, path: %s, error: %w", dropIn.Path,
				err)
		}
	}
	return nil
}

// checkKubeletYAML returns the error with which a kubelet ends that cannot decode its configuration
// (DecodeKubeletConfiguration in pkg/kubelet/kubeletconfig/util/codec/codec.go of kubernetes v1.36.3). A value of another
// type, such as a duration without a unit, is one; a field that it lacks is none.
func checkKubeletYAML(text []byte) error {
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	if config["kind"] != "KubeletConfiguration" || config["apiVersion"] != "kubelet.config.k8s.io/v1beta1" {
		//lint:ignore ST1005 as the real one says it
		return errors.New("Object 'Kind' is missing, or it is no KubeletConfiguration of kubelet.config.k8s.io/v1beta1")
	}
	content, err := kyaml.YAMLToJSON(text)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(content, &kubeletv1beta1.KubeletConfiguration{})
	}
	if err != nil {
		return fmt.Errorf("failed to decode: %w", err)
	}
	return nil
}

func (c component) hasFlag(name string) bool {
	return slices.ContainsFunc(c.p.Args, func(arg string) bool {
		return arg == name || strings.HasPrefix(arg, name+"=")
	})
}

// foreignLabels returns the labels that a kubelet may not set on its own node.
func foreignLabels(flag string) (bad []string) {
	for label := range parseLabels(flag) {
		domain, _, qualified := strings.Cut(label, "/")
		in := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
		if qualified && (in("kubernetes.io") || in("k8s.io")) && !kubeletapis.IsKubeletLabel(label) {
			bad = append(bad, label)
		}
	}
	slices.Sort(bad)
	return bad
}

func parseLabels(flag string) map[string]any {
	labels := map[string]any{}
	for pair := range strings.SplitSeq(flag, ",") {
		if name, value, _ := strings.Cut(pair, "="); name != "" {
			labels[name] = value
		}
	}
	return labels
}

// parseTaints parses a list of taints, each of the form key=value:Effect or key:Effect.
func parseTaints(flag string) []any {
	var taints []any
	for one := range strings.SplitSeq(flag, ",") {
		name, effect, ok := strings.Cut(one, ":")
		if !ok {
			continue
		}
		key, value, _ := strings.Cut(name, "=")
		taint := map[string]any{"key": key, "effect": effect}
		if value != "" {
			taint["value"] = value
		}
		taints = append(taints, taint)
	}
	return taints
}

// serveKubelet serves /healthz, and takes part in a cluster if its flags have a
// kubeconfig.
func (c component) serveKubelet() (func(), error) {
	stop, err := c.serveHealth()
	if err != nil {
		return stop, err
	}
	if c.flag("--kubeconfig") == "" { // without a cluster, the kubelet still serves its API
		return stop, c.p.HandleHTTP(kubeletAddress, http.NotFoundHandler())
	}
	k := &kubeletNode{c: c, m: c.p.p.m, kubeconfig: windowsPath(c.flag("--kubeconfig"))}
	k.name = cmp.Or(c.flag("--hostname-override"), strings.ToLower(k.m.options.Hostname))
	credentials, err := k.credentials()
	if err == nil {
		err = c.p.HandleHTTP(kubeletAddress, http.NotFoundHandler())
	}
	if err != nil {
		stop()
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.p.Context())
	done := make(chan struct{})
	k.m.spawn(func() {
		defer close(done)
		k.run(ctx, credentials)
	})
	return func() {
		cancel()
		<-done
		c.p.p.stopListening(kubeletAddress)
		stop()
	}, nil
}

// credentials returns the credentials of an earlier bootstrap. If there are none, it returns the
// credentials that kubeadm wrote for the bootstrap.
func (k *kubeletNode) credentials() (kubeconfig, error) {
	text, err := k.m.ReadFile(k.kubeconfig)
	if errors.Is(err, fault.ErrNotExist) {
		bootstrap := k.c.flag("--bootstrap-kubeconfig")
		if text, err = k.m.ReadFile(windowsPath(bootstrap)); errors.Is(err, fault.ErrNotExist) {
			//lint:ignore ST1005 as the real one says it
			return kubeconfig{}, fmt.Errorf("failed to run Kubelet: unable to load bootstrap kubeconfig: stat %s: The "+
				"system cannot find the file specified.", windowsPath(bootstrap))
		}
	}
	if err != nil {
		return kubeconfig{}, err
	}
	return parseKubeconfig(text)
}
