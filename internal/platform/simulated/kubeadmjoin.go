package simulated

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// kubeadmJoin is one run of kubeadm join.
type kubeadmJoin struct {
	p       *Process
	version string
	config  joinConfiguration
	ignored []string
	client  *apiClient // sends the bootstrap token with each request

	nodeName, caPath, server, tlsToken               string
	ca                                               []byte
	discoverTimeout, healthTimeout, bootstrapTimeout time.Duration
}

// joinConfiguration has the fields of kubeadm's v1beta3 and v1beta4 that the
// simulation uses.
type joinConfiguration struct {
	APIVersion       string `yaml:"apiVersion"`
	Kind             string `yaml:"kind"`
	CACertPath       string `yaml:"caCertPath"`
	NodeRegistration struct {
		Name                  string    `yaml:"name"`
		CRISocket             string    `yaml:"criSocket"`
		KubeletExtraArgs      yaml.Node `yaml:"kubeletExtraArgs"`
		IgnorePreflightErrors []string  `yaml:"ignorePreflightErrors"`
		Taints                []struct {
			Key, Value, Effect string
		} `yaml:"taints"`
	} `yaml:"nodeRegistration"`
	Discovery struct {
		TLSBootstrapToken string `yaml:"tlsBootstrapToken"`
		Timeout           string `yaml:"timeout"`
		BootstrapToken    struct {
			APIServerEndpoint        string   `yaml:"apiServerEndpoint"`
			Token                    string   `yaml:"token"`
			CACertHashes             []string `yaml:"caCertHashes"`
			UnsafeSkipCAVerification bool     `yaml:"unsafeSkipCAVerification"`
		} `yaml:"bootstrapToken"`
	} `yaml:"discovery"`
	Timeouts struct {
		Discovery          string `yaml:"discovery"`
		KubeletHealthCheck string `yaml:"kubeletHealthCheck"`
		TLSBootstrap       string `yaml:"tlsBootstrap"`
	} `yaml:"timeouts"`
}

// simulatedTimeout is the timeout if the configuration sets none. It is shorter than kubeadm's own
// timeouts of five and four minutes.
const simulatedTimeout = 20 * time.Second

func (c component) newKubeadmJoin() (*kubeadmJoin, error) {
	j := &kubeadmJoin{p: c.p, version: c.version}
	file := c.flag("--config")
	if file == "" {
		return nil, errors.New("the simulated kubeadm joins with --config only")
	}
	text, err := c.p.p.m.ReadFile(windowsPath(file))
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", file, err)
	}
	if err := j.decode(text); err != nil {
		return nil, err
	}
	token := j.config.Discovery.BootstrapToken
	j.tlsToken = cmp.Or(j.config.Discovery.TLSBootstrapToken, token.Token)
	j.ignored = j.config.NodeRegistration.IgnorePreflightErrors
	if flag := c.flag("--ignore-preflight-errors"); flag != "" {
		j.ignored = append(j.ignored, strings.Split(flag, ",")...)
	}
	j.nodeName = cmp.Or(c.flag("--node-name"), j.config.NodeRegistration.Name,
		strings.ToLower(c.p.p.m.options.Hostname))
	j.caPath = windowsPath(cmp.Or(j.config.CACertPath, kubernetesFolder+`\pki\ca.crt`))
	for _, timeout := range []struct {
		text string
		to   *time.Duration
	}{
		{cmp.Or(j.config.Timeouts.Discovery, j.config.Discovery.Timeout), &j.discoverTimeout},
		{j.config.Timeouts.KubeletHealthCheck, &j.healthTimeout}, {j.config.Timeouts.TLSBootstrap, &j.bootstrapTimeout},
	} {
		*timeout.to = simulatedTimeout
		if d, err := time.ParseDuration(timeout.text); err == nil && d > 0 {
			*timeout.to = d
		}
	}
	return j, j.validate()
}

// decode finds the JoinConfiguration among the documents.
func (j *kubeadmJoin) decode(text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var config joinConfiguration
		err := decoder.Decode(&config)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("no InitConfiguration or JoinConfiguration kind was found in the YAML file")
		case err != nil:
			return fmt.Errorf("error unmarshaling configuration: %w", err)
		case config.Kind == "JoinConfiguration":
			j.config = config
			return nil
		}
	}
}

// validate checks the version of the configuration and its required fields.
func (j *kubeadmJoin) validate() error {
	if group, version, _ := strings.Cut(j.config.APIVersion, "/"); group != "kubeadm.k8s.io" ||
		!slices.Contains([]string{"v1beta3", "v1beta4"}, version) {
		return fmt.Errorf("your configuration file uses an API version that this kubeadm does not understand: %q",
			j.config.APIVersion)
	}
	_, minor := versionNumbers(j.version)
	if j.config.APIVersion == "kubeadm.k8s.io/v1beta4" && minor < 31 {
		return fmt.Errorf("no kind \"JoinConfiguration\" is registered for version %q", j.config.APIVersion)
	}
	token := j.config.Discovery.BootstrapToken
	id, secret, _ := strings.Cut(token.Token, ".")
	switch {
	case token.APIServerEndpoint == "":
		return errors.New("discovery.bootstrapToken.apiServerEndpoint: Required value")
	case len(id) != 6 || len(secret) != 16:
		return errors.New("discovery.bootstrapToken.token: Invalid value: the bootstrap token is invalid")
	case len(token.CACertHashes) == 0 && !token.UnsafeSkipCAVerification:
		return errors.New("discovery.bootstrapToken: Invalid value: using token-based discovery without caCertHashes " +
			"can be unsafe. Set unsafeSkipCAVerification as true in your kubeadm config file or pass " +
			"--discovery-token-unsafe-skip-ca-verification flag to continue")
	}
	return nil
}

func (j *kubeadmJoin) close() {
	if j.client != nil {
		j.client.close()
	}
}

// discover establishes trust in the cluster. It reads cluster-info from any server, and checks that
// cluster-info is signed with the token and has a pinned CA. Then it reads cluster-info again from
// a server of this CA, and checks that nothing has changed.
func (j *kubeadmJoin) discover(ctx context.Context) error {
	token := j.config.Discovery.BootstrapToken
	server := "https://" + token.APIServerEndpoint
	anyone := j.p.newAPIClient(server, nil, "")
	defer anyone.close()
	var info string
	var failed error
	err := poll(ctx, j.discoverTimeout, func() bool {
		info, failed = signedInfo(ctx, anyone, token.Token)
		return failed == nil
	})
	if err != nil {
		return fmt.Errorf("couldn't validate the identity of the API Server: %w", cmp.Or(failed, err))
	}
	k, err := parseKubeconfig([]byte(info))
	if err != nil {
		return err
	}
	if hash, err := publicKeyHash(k.ca); err != nil {
		return err
	} else if len(token.CACertHashes) > 0 && !slices.Contains(token.CACertHashes, hash) {
		return fmt.Errorf("couldn't validate the identity of the API Server: cluster CA found in cluster-info "+
			"ConfigMap is invalid: public key %s not pinned", hash)
	}
	trusted := j.p.newAPIClient(server, k.ca, "")
	defer trusted.close()
	if again, err := signedInfo(ctx, trusted, token.Token); err != nil {
		return fmt.Errorf("couldn't validate the identity of the API Server: %w", err)
	} else if again != info {
		return errors.New("the second kubeconfig from the cluster-info ConfigMap differs from the first")
	}
	j.server, j.ca = k.server, k.ca
	j.client = j.p.newAPIClient(k.server, k.ca, j.tlsToken)
	fmt.Fprintln(j.p.Stdout, `[preflight] Reading configuration from the "kubeadm-config" ConfigMap in namespace `+
		`"kube-system"...`)
	if _, err := j.client.configMap(ctx, "kube-system", "kubeadm-config"); err != nil {
		return fmt.Errorf("failed to get config map: %w", err)
	}
	return nil
}

// signedInfo returns the kubeconfig of cluster-info, if it is signed with the
// token.
func signedInfo(ctx context.Context, client *apiClient, token string) (string, error) {
	data, err := client.configMap(ctx, "kube-public", "cluster-info")
	if err != nil {
		return "", fmt.Errorf("failed to request the cluster-info ConfigMap: %w", err)
	}
	id, secret, _ := strings.Cut(token, ".")
	signature, ok := data["jws-kubeconfig-"+id]
	if !ok {
		return "", fmt.Errorf("could not find a JWS signature in the cluster-info ConfigMap for token ID %q", id)
	}
	encode := base64.RawURLEncoding.EncodeToString
	header := encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, id))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(header + "." + encode([]byte(data["kubeconfig"]))))
	if !hmac.Equal([]byte(signature), []byte(header+".."+encode(mac.Sum(nil)))) {
		return "", fmt.Errorf("failed to verify JWS signature of received cluster info object, can't trust this API " +
			"Server")
	}
	return data["kubeconfig"], nil
}

// publicKeyHash returns the hash by which a CA is pinned.
func publicKeyHash(ca []byte) (string, error) {
	block, _ := pem.Decode(ca)
	if block == nil {
		return "", errors.New("cluster CA found in cluster-info ConfigMap is no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// defaultSocket is the runtime's socket without a criSocket.
const defaultSocket = "npipe:////./pipe/containerd-containerd"

// kubeletConfig returns the cluster's kubelet configuration with kubeadm's changes for Windows.
func (j *kubeadmJoin) kubeletConfig(ctx context.Context) (config map[string]any, err error) {
	data, err := j.client.configMap(ctx, "kube-system", "kubelet-config")
	if err != nil {
		return nil, fmt.Errorf("could not get the kubelet configuration: %w", err)
	}
	if err := yaml.Unmarshal([]byte(data["kubelet"]), &config); err != nil {
		return nil, err
	}
	config["resolvConf"] = ""
	if folder, ok := config["staticPodPath"].(string); ok {
		config["staticPodPath"] = windowsPath(folder)
	}
	if authentication, ok := config["authentication"].(map[string]any); ok {
		if x509, ok := authentication["x509"].(map[string]any); ok {
			x509["clientCAFile"] = j.caPath
		}
	}
	return config, nil
}

// writeKubeletConfig writes the kubelet configuration, and the flags of this node.
func (j *kubeadmJoin) writeKubeletConfig(ctx context.Context) error {
	config, err := j.kubeletConfig(ctx)
	if err != nil {
		return err
	}
	socket := cmp.Or(j.config.NodeRegistration.CRISocket, defaultSocket)
	flags, err := j.kubeletFlags(socket)
	if err != nil {
		return err
	}
	// From 1.34 on, the socket is in the configuration instead of a flag.
	if _, minor := versionNumbers(j.version); minor >= 34 {
		config["containerRuntimeEndpoint"] = socket
		instance := "apiVersion: kubelet.config.k8s.io/v1beta1\ncontainerRuntimeEndpoint: " + socket +
			"\nkind: KubeletConfiguration\n"
		if err := j.write(kubeletFolder+`\instance-config.yaml`, []byte(instance)); err != nil {
			return err
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	fmt.Fprintf(j.p.Stdout, "[kubelet-start] Writing kubelet configuration to file %q\n",
		`\var\lib\kubelet\config.yaml`)
	if err := j.write(kubeletFolder+`\config.yaml`, text); err != nil {
		return err
	}
	fmt.Fprintf(j.p.Stdout, "[kubelet-start] Writing kubelet environment file with flags to file %q\n",
		`\var\lib\kubelet\kubeadm-flags.env`)
	return j.write(kubeletFolder+`\kubeadm-flags.env`, fmt.Appendf(nil, "KUBELET_KUBEADM_ARGS=%q\n",
		strings.Join(flags, " ")))
}

// kubeletFlags returns the flags of kubeadm-flags.env, sorted.
func (j *kubeadmJoin) kubeletFlags(socket string) ([]string, error) {
	flags := map[string]string{}
	if _, minor := versionNumbers(j.version); minor < 34 {
		flags["container-runtime-endpoint"] = socket
	}
	if j.nodeName != strings.ToLower(j.p.p.m.options.Hostname) {
		flags["hostname-override"] = j.nodeName
	}
	var taints []string
	for _, taint := range j.config.NodeRegistration.Taints {
		text := taint.Key
		if taint.Value != "" {
			text += "=" + taint.Value
		}
		taints = append(taints, text+":"+taint.Effect)
	}
	if len(taints) > 0 {
		flags["register-with-taints"] = strings.Join(taints, ",")
	}
	extra, err := j.extraArgs()
	if err != nil {
		return nil, err
	}
	for name, value := range extra {
		flags[name] = value
	}
	var list []string
	for _, name := range sortedKeys(flags) {
		list = append(list, "--"+name+"="+flags[name])
	}
	return list, nil
}

// extraArgs parses kubeletExtraArgs, which is a map in v1beta3 and a list in v1beta4.
func (j *kubeadmJoin) extraArgs() (map[string]string, error) {
	node, args := j.config.NodeRegistration.KubeletExtraArgs, map[string]string{}
	switch node.Kind {
	case yaml.MappingNode:
		return args, node.Decode(&args)
	case yaml.SequenceNode:
		var list []struct{ Name, Value string }
		if err := node.Decode(&list); err != nil {
			return nil, err
		}
		for _, arg := range list {
			args[arg.Name] = arg.Value
		}
	}
	return args, nil
}
