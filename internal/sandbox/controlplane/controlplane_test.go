//go:build linux

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

// patience bounds the wait for conditions that take a few hundred milliseconds on an idle machine.
const patience = time.Minute

func TestAClusterThatNodesCanJoin(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir())
	admin := client(t, c)

	kubectl(t, c, "create", "namespace", "made-by-kubectl")
	eventually(t, "its service account", func(ctx context.Context) error {
		_, err := admin.CoreV1().ServiceAccounts("made-by-kubectl").Get(ctx, "default", meta.GetOptions{})
		return err
	})

	const id, secret = "abcdef", "0123456789abcdef"
	if left := tokens(t, admin); len(left) > 0 {
		t.Errorf("it begins with tokens that nobody asked for: %v", left)
	}
	mint(t, admin, id, secret)
	kubeconfig := awaitSigned(t, c, id, secret)
	if !strings.Contains(kubeconfig, c.Server()) {
		t.Errorf("cluster-info leads elsewhere than to %s:\n%s", c.Server(), kubeconfig)
	}
	asTokenHolder := bearer(t, c, id+"."+secret)
	for _, name := range []string{"kubeadm-config", "kubelet-config"} {
		if _, err := asTokenHolder.CoreV1().ConfigMaps(meta.NamespaceSystem).Get(t.Context(), name,
			meta.GetOptions{}); err != nil {
			t.Errorf("what `kubeadm join` reads: %v", err)
		}
	}

	expectNowhere(t, c.Logs(), secret)
	expectStopped(t, c)
}

// A joining kubelet uses the paths in kubelet-config, so they must exist on its own machine.
func TestNodesAreToldPathsThatTheyHave(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir())
	for _, name := range []string{"kubeadm-config", "kubelet-config"} {
		found, err := client(t, c).CoreV1().ConfigMaps(meta.NamespaceSystem).Get(t.Context(), name, meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(found.Data)
		if !strings.Contains(text, "/etc/kubernetes/pki") || strings.Contains(text, c.layout.state) {
			t.Errorf("%s names other folders than a node's:\n%s", name, text)
		}
	}
}

func TestSideBySide(t *testing.T) {
	t.Parallel()
	one, other := start(t, t.TempDir()), start(t, t.TempDir())
	kubectl(t, one, "create", "namespace", "of-one")
	if _, err := client(t, other).CoreV1().Namespaces().Get(t.Context(), "of-one",
		meta.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other has it, too: %v", err)
	}
	expectStopped(t, one)
	kubectl(t, other, "create", "namespace", "of-the-other")
	expectStopped(t, other)
}

func TestADeathIsReported(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir())
	if err := c.Err(); err != nil {
		t.Errorf("it is told dead while it lives: %v", err)
	}
	victim := running(t, c, apiServer)
	if err := syscall.Kill(victim.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Died():
	case <-time.After(patience):
		t.Fatal("nobody has noticed")
	}
	words := lastLines(victim.log)
	for _, expected := range []string{apiServer, "killed", victim.log, words} {
		if words == "" || !strings.Contains(c.Err().Error(), expected) {
			t.Errorf("the report lacks %q:\n%v", expected, c.Err())
		}
	}
	expectStopped(t, c)
}

func TestAProgramThatEndsAtOnceEndsTheStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range programs() {
		if err := os.Symlink(filepath.Join(lab(t), name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	state := t.TempDir()
	broken := filepath.Join(folder, scheduler)
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho I will not >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Binaries: folder, State: state})
	if err == nil {
		t.Fatal("it has started")
	}
	for _, expected := range []string{scheduler, "exit status 3", "I will not"} {
		if !strings.Contains(err.Error(), expected) {
			t.Errorf("the error lacks %q:\n%v", expected, err)
		}
	}
	expectNoProcess(t, state)
}

func TestACanceledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	binaries, state := lab(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := Start(ctx, Options{Binaries: binaries, State: state})
		done <- err
	}()
	eventually(t, "the API server's log", func(context.Context) error {
		_, err := os.Stat(layout{state: state}.log(apiServer))
		return err
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Start returned %v", err)
	}
	expectNoProcess(t, state)
}

// The test program runs itself as the parent, see TestMain: a parent that is killed cannot clean
// up.
func TestItEndsWithItsParent(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOf+"="+state, "SWDT_LAB="+filepath.Dir(lab(t)))
	parent.Stderr = os.Stderr
	ready, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_, readErr := ready.Read(make([]byte, 1))
	alive := processesOf(t, state)
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait()
	if readErr != nil || len(alive) != 4 {
		t.Fatalf("it did not run (%v): processes %v", readErr, alive)
	}
	eventually(t, "their end", func(context.Context) error {
		if left := processesOf(t, state); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
}

func TestAStateFolderInUseIsRefused(t *testing.T) {
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := makeLayout(Options{State: state}); err == nil || !strings.Contains(err.Error(), state) {
		t.Errorf("makeLayout returned %v", err)
	}
}

func expectStopped(t *testing.T, c *ControlPlane) {
	t.Helper()
	for range 2 { // the second time there is nothing to do
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expectNoProcess(t, c.layout.state)
	for _, port := range []int{c.ports.apiServer, c.ports.etcd} {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("something answers on %s", address)
		}
	}
}

func kubectl(t *testing.T, c *ControlPlane, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(lab(t), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

func client(t *testing.T, c *ControlPlane) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != c.Server() {
		t.Errorf("the kubeconfig leads to %s, not to %s", config.Host, c.Server())
	}
	return clientOf(t, config)
}

// bearer returns a client with a token; an anonymous one if token is empty.
func bearer(t *testing.T, c *ControlPlane, token string) kubernetes.Interface {
	t.Helper()
	tls := rest.TLSClientConfig{CAFile: c.layout.certificate("ca")}
	return clientOf(t, &rest.Config{Host: c.Server(), TLSClientConfig: tls, BearerToken: token})
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	made, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func tokens(t *testing.T, admin kubernetes.Interface) (names []string) {
	t.Helper()
	of := meta.ListOptions{FieldSelector: "type=" + string(bootstrap.SecretTypeBootstrapToken)}
	found, err := admin.CoreV1().Secrets(meta.NamespaceSystem).List(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range found.Items {
		names = append(names, secret.Name)
	}
	return names
}

func mint(t *testing.T, admin kubernetes.Interface, id, secret string) {
	t.Helper()
	token := &core.Secret{
		ObjectMeta: meta.ObjectMeta{Name: bootstrap.BootstrapTokenSecretPrefix + id},
		Type:       bootstrap.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrap.BootstrapTokenIDKey:               id,
			bootstrap.BootstrapTokenSecretKey:           secret,
			bootstrap.BootstrapTokenUsageSigningKey:     "true",
			bootstrap.BootstrapTokenUsageAuthentication: "true",
			bootstrap.BootstrapTokenExtraGroupsKey:      "system:bootstrappers:kubeadm:default-node-token",
		},
	}
	if _, err := admin.CoreV1().Secrets(meta.NamespaceSystem).Create(t.Context(), token,
		meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitSigned waits until cluster-info is signed with the token, and returns its kubeconfig. It
// reads cluster-info anonymously, as `kubeadm join` does.
func awaitSigned(t *testing.T, c *ControlPlane, id, secret string) (kubeconfig string) {
	t.Helper()
	anonymous := bearer(t, c, "")
	eventually(t, "cluster-info to be signed", func(ctx context.Context) error {
		info, err := anonymous.CoreV1().ConfigMaps(meta.NamespacePublic).Get(ctx, bootstrap.ConfigMapClusterInfo,
			meta.GetOptions{})
		if err != nil {
			return err
		}
		kubeconfig = info.Data[bootstrap.KubeConfigKey]
		if !jws.DetachedTokenIsValid(info.Data[bootstrap.JWSSignatureKeyPrefix+id], kubeconfig, id, secret) {
			return errors.New("no valid signature")
		}
		return nil
	})
	return kubeconfig
}

func running(t *testing.T, c *ControlPlane, name string) *process {
	t.Helper()
	for _, p := range c.processes {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("no %s runs", name)
	return nil
}

func expectNowhere(t *testing.T, folder, secret string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("the logs are %v (%v)", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 || strings.Contains(string(text), secret) {
			t.Errorf("%s is empty or has the token's secret", file)
		}
	}
}
