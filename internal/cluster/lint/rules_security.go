package lint

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// administrator is the user that kubelet regards as root.
const administrator = "ContainerAdministrator"

// securityRules are about users, the node's network and Pod Security.
func securityRules() []Rule {
	return []Rule{
		{
			ID: "sec-runasnonroot", Severity: finding.Error, Effect: Fails,
			Title:  "containers with runAsNonRoot do not run as " + administrator,
			Means:  "kubelet does not start the container. On Windows it compares the name of the user, in any case of letters.",
			Remedy: "write another user in windowsOptions.runAsUserName, such as ContainerUser",
			Source: kubernetesAt + "pkg/kubelet/kuberuntime/security_context_windows.go", windows: nonRoot,
			Bad:  "securityContext: {runAsNonRoot: true, windowsOptions: {runAsUserName: ContainerAdministrator}}",
			Good: "securityContext: {runAsNonRoot: true, windowsOptions: {runAsUserName: ContainerUser}}",
		},
		{
			ID: "sec-hostnetwork", whole: true, Severity: finding.Warning, Effect: Ignored, fix: removal(),
			Title: "only HostProcess pods have hostNetwork: true",
			Means: "containerd gives other pods a network of their own on Windows. The API server has copied each containerPort to hostPort " +
				"all the same, so the scheduler keeps a second pod with that port away from the node.",
			Remedy: "remove hostNetwork, or make the pods HostProcess pods",
			Source: containerdAt + "internal/cri/server/helpers.go", windows: plainHostNetwork,
			Bad: "hostNetwork: true", Good: hostProcessExample,
		},
		{
			ID: "gmsa-spec", Severity: finding.Info, Effect: Noted,
			Title: "the manifests have the credential spec that gmsaCredentialSpecName names",
			Means: "a name alone does nothing. A webhook writes the GMSACredentialSpec of that name into the pods, and rejects them if it is missing, or if " +
				"their service account may not use it. Without the webhook, the pods run without the account.",
			Remedy: "install the webhook, apply the GMSACredentialSpec, and allow the service account the verb use",
			Source: "https://kubernetes.io/docs/tasks/configure-pod-container/configure-gmsa/", object: credentialSpec,
			Bad: "securityContext: {windowsOptions: {gmsaCredentialSpecName: web}}",
			Good: "apiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {name: web}\ncredspec: {}\n---\n" +
				pod("metadata: {name: web}", "securityContext: {windowsOptions: {gmsaCredentialSpecName: web}}"),
		},
		{
			ID: "sec-psa", Severity: finding.Error, Effect: Rejected,
			Title: "the pods meet the Pod Security standard of their namespace",
			Means: "the API server rejects the pods. It accepts a Deployment or DaemonSet, which then makes no pods. HostProcess containers " +
				"need the standard privileged.",
			Remedy: "correct the fields, or write pod-security.kubernetes.io/enforce: privileged into the namespace's labels",
			Source: "https://kubernetes.io/docs/concepts/security/pod-security-standards/", object: podSecurity,
			Bad: namespaced("baseline"), Good: namespaced("privileged"),
		},
		{
			ID: "sec-psa-hostprocess", Severity: finding.Info, Effect: Noted,
			Title: "the namespace of HostProcess pods allows them",
			Means: "the Pod Security standards baseline and restricted refuse HostProcess containers. The manifests do not have the namespace, " +
				"so swdt does not know its labels.",
			Remedy: "give the namespace the label pod-security.kubernetes.io/enforce: privileged, if the cluster enforces another standard",
			Source: "https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/", object: unknownNamespace,
			Bad: pod("metadata: {name: web, namespace: tools}", hostProcessExample), Good: namespaced("privileged"),
		},
	}
}

// namespaced returns a HostProcess pod in a namespace with a standard.
func namespaced(standard string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: tools, labels: {pod-security.kubernetes.io/enforce: " + standard + "}}\n---\n" +
		pod("metadata: {name: web, namespace: tools}", hostProcessExample)
}

func nonRoot(p *pods, found report) {
	for _, c := range p.containers() {
		var wanted *bool
		if sc := p.spec.SecurityContext; sc != nil {
			wanted = sc.RunAsNonRoot
		}
		if sc := c.SecurityContext; sc != nil && sc.RunAsNonRoot != nil {
			wanted = sc.RunAsNonRoot
		}
		user, at := p.user(c)
		if wanted != nil && *wanted && user != nil && strings.EqualFold(*user, administrator) {
			found(seen{at: at, what: fmt.Sprintf("kubelet does not start container %s: runAsNonRoot is true, and its user is %s", c.Name, *user)})
		}
	}
}

func plainHostNetwork(p *pods, found report) {
	if p.spec.HostNetwork && !p.isHostProcess() {
		// Without another dnsPolicy, kubelet gives pods with hostNetwork the DNS of the node, and others that of the cluster.
		byHand := p.spec.DNSPolicy == "" || p.spec.DNSPolicy == corev1.DNSClusterFirst
		found(seen{at: p.at("hostNetwork"), what: "hostNetwork has no effect on Windows: the pods get a network of their own", byHand: byHand})
	}
}

// podSecurity holds the pods for Windows against the standard of their namespace, if the manifests have it.
func podSecurity(o *object, m *manifests, found report) {
	namespace := m.namespaces[o.namespace]
	if o.pods == nil || o.pods.system.name != corev1.Windows || namespace == nil {
		return
	}
	labels := namespace.texts(path{"metadata", "labels"})
	level, err := api.ParseLevel(labels[api.EnforceLevelLabel])
	if labels[api.EnforceLevelLabel] == "" || err != nil {
		return
	}
	version := api.LatestVersion()
	if text := labels[api.EnforceVersionLabel]; text != "" {
		if version, err = api.ParseVersion(text); err != nil {
			return
		}
	}
	for _, result := range violations(o.pods, api.LevelVersion{Level: level, Version: version}) {
		found(seen{at: o.pods.path, what: fmt.Sprintf("the standard %s of namespace %s refuses the pods: %s (%s)", level, o.namespace,
			result.ForbiddenReason, result.ForbiddenDetail)})
	}
}

// violations returns the checks of a standard that pods do not pass.
func violations(p *pods, standard api.LevelVersion) (all []policy.CheckResult) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil
	}
	for _, result := range evaluator.EvaluatePod(standard, &p.meta, &p.spec) {
		if !result.Allowed {
			all = append(all, result)
		}
	}
	return all
}

func unknownNamespace(o *object, m *manifests, found report) {
	if o.pods == nil || !o.pods.isHostProcess() || m.namespaces[o.namespace] != nil || o.namespace == "kube-system" || o.namespace == "" {
		return
	}
	found(seen{at: o.pods.path, what: fmt.Sprintf("namespace %s must allow HostProcess containers", o.namespace)})
}

// namespacesOf returns the namespaces of manifests by name.
func namespacesOf(all []*object) map[string]*object {
	named := map[string]*object{}
	for _, o := range all {
		if o.kind == "Namespace" && o.group == "" && documents.Text(o.node, "metadata", "name") != "" {
			named[o.name] = o
		}
	}
	return named
}

func credentialSpec(o *object, m *manifests, found report) {
	if o.pods == nil {
		return
	}
	check := func(at path, options *corev1.WindowsSecurityContextOptions) {
		if name := options.GMSACredentialSpecName; name != nil && options.GMSACredentialSpec == nil && !m.credentialSpecs[*name] {
			found(seen{at: at.child("securityContext", "windowsOptions", "gmsaCredentialSpecName"), what: fmt.Sprintf("the manifests have no GMSACredentialSpec %s", *name)})
		}
	}
	check(o.pods.path, o.pods.options())
	for _, c := range o.pods.containers() {
		check(c.path, c.options())
	}
}
