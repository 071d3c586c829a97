package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// agentsFile lists the hashes of the agents that a simulated machine runs. A sandbox of another driver has
// no such file.
const agentsFile = "agents.json"

// StandIn returns the executable that stands for the agent on a simulated machine. A simulated machine
// does not run the bytes of an agent: it runs the agent's code that is in the swdt that started it. So
// the stand-in only identifies the RPCs that this code answers: its hash changes with their definition.
func StandIn() (agentbin.Agent, error) {
	files := map[string]protoreflect.FileDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("swdt.agent.v1", func(file protoreflect.FileDescriptor) bool {
		files[file.Path()] = file
		return true
	})
	rpcs := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		description := protodesc.ToFileDescriptorProto(files[path])
		definition, err := proto.MarshalOptions{Deterministic: true}.Marshal(description)
		if err != nil {
			return agentbin.Agent{}, fmt.Errorf("describe the agent's RPCs: %w", err)
		}
		rpcs.Write(definition)
	}
	return agentbin.FromBytes(simulated.Binary(simulated.BinarySpec{
		Name: "swdt-agent", Version: hex.EncodeToString(rpcs.Sum(nil))})), nil
}

// Access is how a node is reached. It is a simulated sandbox of this user if HostKey is the fingerprint of
// the sandbox's host key, of which no other machine has the private part, or if Kubeconfig has the
// sandbox's kubeconfig.
type Access struct {
	PrivateKey string // path of the SSH key of the client
	HostKey    string // fingerprint
	Kubeconfig string // path; "": the node is reached by SSH
}

// AgentOf returns the agent for a node that is a simulated sandbox of this user, and false for any other
// node. own is the agent inside this swdt, if there is one. AgentOf returns the stand-in if this swdt, or the
// one that started the sandbox, has no agent inside. Otherwise it returns own, which the sandbox refuses if it
// has another one.
func AgentOf(node Access, own agentbin.Agent) (agent agentbin.Agent, ok bool, err error) {
	var runs []string
	f, ok := node.simulated()
	if !ok || readJSON(f.file(agentsFile), &runs) != nil {
		return own, false, nil
	}
	if own.Hash != "" && len(runs) > 1 {
		return own, true, nil
	}
	agent, err = StandIn()
	return agent, true, err
}

// simulated returns the folder of the sandbox.
func (a Access) simulated() (folder, bool) {
	if a.Kubeconfig != "" {
		return simulatedCluster(a.Kubeconfig)
	}
	if a.PrivateKey == "" {
		return folder{}, false
	}
	f := folder{path: filepath.Dir(a.PrivateKey)}
	hostKey, err := readKey(f.file(hostKeyFile))
	if err != nil || ssh.FingerprintSHA256(hostKey.PublicKey()) != a.HostKey {
		return folder{}, false
	}
	return f, true
}

// simulatedCluster returns the folder of the simulated sandbox whose kubeconfig this is, or a copy of it.
func simulatedCluster(path string) (folder, bool) {
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		return folder{}, false
	}
	folders := []folder{{path: filepath.Dir(path)}}
	if state, err := DefaultStateDir(); err == nil {
		names, _ := sandboxesIn(state) // without a list, the kubeconfig's own folder is left
		for _, name := range names {
			folders = append(folders, folderOf(state, name))
		}
	}
	for _, f := range folders {
		own, err := os.ReadFile(f.file(kubeconfigFile))
		if err == nil && bytes.Equal(own, kubeconfig) && f.isSandbox() {
			return f, true
		}
	}
	return folder{}, false
}
