package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// kubeadmFailed is kubeadm's exit code for each error (kubernetes v1.36.3 and v1.35.4,
// cmd/kubeadm/app/util/errors/errors.go).
const kubeadmFailed = 1

// Paths of kubeadm's files on Windows.
const (
	kubernetesFolder = `C:\etc\kubernetes`
	kubeletConf      = kubernetesFolder + `\kubelet.conf`
	bootstrapConf    = kubernetesFolder + `\bootstrap-kubelet.conf`
	kubeletFolder    = `C:\var\lib\kubelet`
)

// kubeadm imitates the commands of kubeadm that a node needs: join --config, upgrade node phase kubelet-config, reset and
// version. Phases, checks and texts are those of kubernetes v1.36.3, cmd/kubeadm/app (cmd/join.go, cmd/reset.go,
// cmd/phases/join, cmd/phases/reset, preflight/checks.go, discovery/token, phases/kubelet, util/apiclient/wait.go); tests
// under Wine run the real one.
func (c component) kubeadm(ctx context.Context) int {
	name := ""
	if len(c.p.Args) > 0 {
		name = c.p.Args[0]
	}
	switch {
	case c.fault == CrashAtStart:
		return kubeadmFailed
	case name == "version":
		return c.kubeadmVersion()
	case name == "join":
		return c.kubeadmJoin(ctx)
	case name == "reset":
		return c.kubeadmReset(ctx)
	case name == "upgrade":
		return c.kubeadmUpgrade(ctx)
	}
	fmt.Fprintf(c.p.Stderr, "Error: unknown command %q for \"kubeadm\"\n", name)
	return kubeadmFailed
}

func (c component) kubeadmVersion() int {
	if output := c.flag("-o") + c.flag("--output"); output == "short" {
		fmt.Fprintln(c.p.Stdout, c.version)
		return 0
	}
	major, minor := versionNumbers(c.version)
	fmt.Fprintf(c.p.Stdout, "kubeadm version: &version.Info{Major:\"%d\", Minor:\"%d\", GitVersion:%q, "+
		"Platform:\"windows/%s\"}\n",
		major, minor, c.version, c.p.p.m.options.Architecture)
	return 0
}

func (c component) kubeadmJoin(ctx context.Context) int {
	j, err := c.newKubeadmJoin()
	if err != nil {
		return c.kubeadmError(err)
	}
	defer j.close()
	fmt.Fprintln(c.p.Stdout, "[preflight] Running pre-flight checks")
	if problems := j.preflight(ctx); len(problems) > 0 {
		fmt.Fprintf(c.p.Stderr, "[preflight] Some fatal errors occurred:\n%s[preflight] If you know what you are doing, "+
			"you can make a check non-fatal with `--ignore-preflight-errors=...`\n", strings.Join(problems, ""))
		return c.kubeadmError(errors.New("error execution phase preflight: preflight checks failed"))
	}
	for _, phase := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"preflight", j.discover}, {"kubelet-start", j.startKubelet}, {"kubelet-wait-bootstrap", j.awaitKubelet},
	} {
		if err := phase.run(ctx); err != nil {
			return c.kubeadmError(fmt.Errorf("error execution phase %s: %w", phase.name, err))
		}
	}
	fmt.Fprint(c.p.Stdout, "\nThis node has joined the cluster:\n"+
		"* Certificate signing request was sent to apiserver and a response was received.\n"+
		"* The Kubelet was informed of the new secure connection details.\n\n"+
		"Run 'kubectl get nodes' on the control-plane to see this node join the cluster.\n\n")
	return 0
}

// kubeadmError prints an error and returns the exit code.
func (c component) kubeadmError(err error) int {
	fmt.Fprintf(c.p.Stderr, "error: %v\nTo see the stack trace of this error execute with --v=5 or higher\n", err)
	return kubeadmFailed
}

// preflight returns the lines of all failed checks that are not ignored.
func (j *kubeadmJoin) preflight(ctx context.Context) (problems []string) {
	files, all := j.p.Platform.Files, slices.Contains(j.ignored, "all")
	fail := func(check, format string, args ...any) {
		kind := "ERROR"
		if all || slices.ContainsFunc(j.ignored, func(name string) bool { return strings.EqualFold(name, check) }) {
			kind = "WARNING"
		}
		line := fmt.Sprintf("\t[%s %s]: %s\n", kind, check, fmt.Sprintf(format, args...))
		if kind == "WARNING" {
			fmt.Fprint(j.p.Stderr, line)
			return
		}
		problems = append(problems, line)
	}
	// kubeadm joins the first two paths as Windows does, and takes the third one as it is configured.
	for _, path := range []string{strings.TrimPrefix(kubeletConf, systemDrive), strings.TrimPrefix(bootstrapConf, systemDrive),
		cmp.Or(j.config.CACertPath, "/etc/kubernetes/pki/ca.crt")} {
		if _, err := files.Stat(windowsPath(path)); err == nil {
			fail("FileAvailable-"+strings.ReplaceAll(path, "/", "-"), "%s already exists", path)
		}
	}
	if _, err := (networkView{j.p.p}).dial(ctx, pipeOf(j.config.NodeRegistration.CRISocket)); err != nil {
		fail("CRI", "could not connect to the container runtime: failed to create new CRI runtime service: validate "+
			"service connection: %v", err)
	}
	if code, err := j.p.Platform.Processes.Run(ctx, platform.Command{Path: "kubelet", Args: []string{"--version"},
		Folder: j.p.Folder}); err != nil || code != 0 {
		fail("KubeletVersion", "couldn't get kubelet version: cannot execute 'kubelet --version': executable file not "+
			"found in %%PATH%%")
	}
	if _, err := j.p.Platform.Services.Status(ctx, "kubelet"); errors.Is(err, fault.ErrNoService) {
		fmt.Fprintln(j.p.Stderr, "\t[WARNING Service-Kubelet]: kubelet service does not exist")
	}
	if j.p.p.m.listens(10250) {
		fail("Port-10250", "Port 10250 is in use")
	}
	return problems
}

// listens reports whether a process listens on a port.
func (m *Machine) listens(port uint16) bool {
	return slices.ContainsFunc(m.listening(), func(l platform.Listener) bool { return l.Port == port })
}

// startKubelet writes the files that the kubelet needs for its bootstrap, and restarts the kubelet.
func (j *kubeadmJoin) startKubelet(ctx context.Context) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	err := j.client.get(ctx, "/api/v1/nodes/"+j.nodeName, &node)
	if err != nil && !isStatus(err, 404) {
		return fmt.Errorf("cannot get Node %q: %w", j.nodeName, err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return fmt.Errorf("a Node with name %q and status \"Ready\" already exists in the cluster. "+
				"You must delete the existing Node or change the name of this new joining Node", j.nodeName)
		}
	}
	bootstrap, err := kubeconfig{server: j.server, ca: j.ca, token: j.tlsToken,
		user: "tls-bootstrap-token-user"}.format()
	if err != nil {
		return err
	}
	if err := j.write(bootstrapConf, bootstrap); err != nil {
		return fmt.Errorf("couldn't save bootstrap-kubelet.conf to disk: %w", err)
	}
	if err := j.write(j.caPath, j.ca); err != nil {
		return fmt.Errorf("couldn't save the CA certificate to disk: %w", err)
	}
	j.stopKubelet(ctx)
	if err := j.writeKubeletConfig(ctx); err != nil {
		return err
	}
	fmt.Fprintln(j.p.Stdout, "[kubelet-start] Starting the kubelet")
	if err := j.p.Platform.Services.Start(ctx, "kubelet"); err != nil {
		fmt.Fprintf(j.p.Stderr, "[kubelet-start] WARNING: unable to start the kubelet service: [%v]\n[kubelet-start] "+
			"Please ensure kubelet is reloaded and running manually.\n", err)
	}
	return nil
}

// stopKubelet stops the kubelet's service and waits until it has stopped.
func (j *kubeadmJoin) stopKubelet(ctx context.Context) { stopKubelet(ctx, j.p) }

func stopKubelet(ctx context.Context, p *Process) {
	if err := p.Platform.Services.Stop(ctx, "kubelet"); err != nil {
		return // the service does not run, or does not exist
	}
	_ = p.p.m.await(ctx, func() bool {
		s := p.p.m.services["kubelet"]
		return s == nil || s.state == platform.Stopped
	})
}

// awaitKubelet waits until the kubelet is healthy, and then until it has written its own
// kubeconfig. In any case, awaitKubelet removes the bootstrap kubeconfig.
func (j *kubeadmJoin) awaitKubelet(ctx context.Context) error {
	defer func() { _ = j.p.Platform.Files.Remove(bootstrapConf) }()
	url := "http://" + HealthAddress + "/healthz"
	fmt.Fprintf(j.p.Stdout, "[kubelet-check] Waiting for a healthy kubelet at %s. This can take up to %s\n",
		url, j.healthTimeout)
	healthy := func() bool {
		status, _, err := (networkView{j.p.p}).get(ctx, url)
		return err == nil && status == 200
	}
	if err := poll(ctx, j.healthTimeout, healthy); err != nil {
		fmt.Fprintf(j.p.Stdout, "[kubelet-check] The kubelet is not healthy after %s\n\nUnfortunately, an error has "+
			"occurred, likely caused by:\n"+
			"\t- The kubelet is not running\n\t- The kubelet is unhealthy due to a misconfiguration of the node in "+
			"some way (required cgroups disabled)\n", j.healthTimeout)
		return fmt.Errorf("failed while waiting for the kubelet to start: The HTTP call equal to 'curl -sSL %s' "+
			"returned error: %w", url, err)
	}
	fmt.Fprintln(j.p.Stdout, "[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap")
	bootstrapped := func() bool {
		_, err := j.p.Platform.Files.Stat(kubeletConf)
		return err == nil
	}
	if err := poll(ctx, j.bootstrapTimeout, bootstrapped); err != nil {
		return fmt.Errorf("failed while waiting for TLS bootstrap: %w", err)
	}
	return nil
}

// poll waits until the function `condition` returns true, for at most timeout. It checks at
// intervals, as kubeadm does.
func poll(ctx context.Context, timeout time.Duration, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for !condition() {
		if err := wait.For(ctx, kubeletTick); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file with its folders through the machine's operations, so that tests can make
// these operations fail.
func (j *kubeadmJoin) write(file string, data []byte) error {
	folder, _ := path.Split(strings.ReplaceAll(file, `\`, "/"))
	if err := j.p.Platform.Files.MakeFolder(strings.ReplaceAll(strings.TrimSuffix(folder, "/"), "/", `\`)); err != nil {
		return err
	}
	f, err := j.p.Platform.Files.Create(file, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// kubeadmReset imitates kubeadm reset: it stops the kubelet, and removes the files and the contents
// of the folders that kubeadm join has written.
func (c component) kubeadmReset(ctx context.Context) int {
	p := c.p
	if !slices.ContainsFunc(p.Args, func(arg string) bool { return arg == "-f" || arg == "--force" }) {
		answer := make([]byte, 1)
		fmt.Fprint(p.Stdout, "[reset] Are you sure you want to proceed? [y/N]: ")
		if n, _ := io.ReadFull(p.Stdin, answer); n == 0 || strings.ToLower(string(answer)) != "y" {
			return c.kubeadmError(errors.New("error execution phase preflight: won't proceed; the user didn't answer (Y|y) " +
				"in order to continue"))
		}
	}
	fmt.Fprintln(p.Stdout, "[reset] Stopping the kubelet service")
	stopKubelet(ctx, p)
	folders := []string{kubernetesFolder + `\manifests`, kubeletFolder, kubernetesFolder + `\pki`}
	fmt.Fprintf(p.Stdout, "[reset] Deleting contents of directories: %v\n", folders)
	for _, folder := range folders {
		removeContents(p.Platform.Files, folder)
	}
	for _, name := range []string{"admin", "super-admin", "kubelet", "bootstrap-kubelet",
		"controller-manager", "scheduler"} {
		_ = p.Platform.Files.Remove(kubernetesFolder + `\` + name + ".conf")
	}
	fmt.Fprintln(p.Stdout, "\nThe reset process does not perform cleanup of CNI plugin configuration,\nnetwork "+
		"filtering rules and kubeconfig files.")
	return 0
}

// removeContents removes as much as possible, and continues after errors as
// kubeadm does.
func removeContents(files platform.Files, folder string) {
	list, err := files.List(folder)
	if err != nil {
		return
	}
	for _, entry := range list {
		if entry.Folder {
			removeContents(files, entry.Path)
		}
		_ = files.Remove(entry.Path)
	}
}
