package node_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestFirstContactInstallsTheAgentAndTheSecondDoesNot(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	if got := bootID(t, c); got != "boot-1" {
		t.Fatalf("got is %q, want %q", got, "boot-1")
	}
	want := []string{"install", "agent"} // the agent that was there before must not run
	if got := f.ran(); !slices.Equal(got, want) {
		t.Errorf("ran\n%s", strings.Join(got, "\n"))
	}
	content, err := f.read(slashed(layout.Agent(f.agent.Hash)))
	if err != nil || content != strings.Repeat(agentContent, 5000) {
		t.Errorf("installed %d bytes, %v", len(content), err)
	}
	if entries, err := f.files.ReadDir(slashed(layout.Agents + `\` + f.agent.Hash)); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
	if left := f.uploaded(); len(left) != 0 {
		t.Errorf("left in the profile: %v", left)
	}
	c.Close()

	before, connections := len(f.ran()), f.ssh.Accepted()
	c = f.connect()
	if got := f.ran()[before:]; !slices.Equal(got, []string{"agent"}) {
		t.Errorf("the second contact ran %q", got)
	}
	switch {
	case c.Calls() != 0:
		t.Errorf("c.Calls() is %v, want 0", c.Calls())
	case c.Connections() != 1:
		t.Errorf("c.Connections() is %v, want 1", c.Connections())
	case f.ssh.Accepted() != connections+1:
		t.Errorf("f.ssh.Accepted() is %v, want %v", f.ssh.Accepted(), connections+1)
	}
	bootID(t, c)
	if c.Calls() != 1 {
		t.Errorf("%d calls counted", c.Calls())
	}
}

// uploaded returns the agents in the profile.
func (n *fakeNode) uploaded() (names []string) {
	n.t.Helper()
	entries, err := n.files.ReadDir(slashed(profile))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "swdt-agent-") {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestAnUploadedAgentThatWasLeftBehindIsRemovedAfterADay(t *testing.T) {
	f := newFakeNode(t, faults{})
	old, young, theirs := "swdt-agent-"+strings.Repeat("a", 26)+".exe", "swdt-agent-"+strings.Repeat("b", 26)+".exe",
		"swdt-agent-mine.exe"
	for _, name := range []string{old, young, theirs} {
		f.write(slashed(profile+`\`+name), "MZ")
	}
	f.disk.age("/"+old, 25*time.Hour)
	f.disk.age("/"+theirs, 25*time.Hour)
	f.connect()
	left := f.uploaded()
	slices.Sort(left)
	if !slices.Equal(left, []string{young, theirs}) {
		t.Errorf("left %q", left)
	}
}

// A profile's path can have any character that Windows allows in a user's name.
func TestProfilesOfAllNames(t *testing.T) {
	for _, name := range []string{"Administrator", "svc_k8s-1.CORP", "John Smith", "Jörg", "山田 太郎", "ソ", "O'Neil & Co",
		"a(b)", "$svc", "Иван"} {
		t.Run(name, func(t *testing.T) {
			f := newFakeNode(t, faults{profile: `C:\Users\` + name})
			bootID(t, f.connect())
		})
	}
	t.Run("on another drive", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.mkdir("/D:", "/D:/Profiles", "/D:/Profiles/admin")
		f.faults.profile = `D:\Profiles\admin`
		bootID(t, f.connect())
	})
}

func TestInstallPrunesOlderAgents(t *testing.T) {
	f := newFakeNode(t, faults{})
	old, guarding, capturing := strings.Repeat("01", 32), strings.Repeat("02", 32), strings.Repeat("03", 32)
	for _, hash := range []string{old, guarding, capturing} {
		f.write(slashed(layout.Agent(hash)), "MZ old")
	}
	f.write(slashed(layout.Agents+`\readme.txt`), "a file")
	f.guardian = strings.ToUpper(`"` + layout.Agent(guarding) + `" guardian 42`)
	f.capture = `"` + layout.Agent(capturing) + `" capture 43`
	f.connect()
	if want := []string{layout.Agents + `\` + old}; !slices.Equal(f.removed, want) {
		t.Errorf("removed %q", f.removed)
	}
}

func TestManyFirstContactsAtOnce(t *testing.T) {
	f := newFakeNode(t, faults{})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			c, err := node.Connect(t.Context(), f.doc, f.opts)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Machine.Facts(t.Context(), &agentv1.FactsRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if entries, err := f.files.ReadDir(slashed(layout.Agents + `\` + f.agent.Hash)); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestDamagedAgentIsReplaced(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.write(slashed(layout.Agent(f.agent.Hash)), "only half of it")
	bootID(t, f.connect())
}

// Any user of a node can create the agent's folder before swdt does and put a program there, even
// one with the right bytes whose access rights let that user replace it later.
func TestPlantedAgentIsNotRunAtTheFirstContact(t *testing.T) {
	f := newFakeNode(t, faults{})
	right := strings.Repeat(agentContent, 5000)
	for name, planted := range map[string]string{"another program": "MZ another agent, which runs",
		"the agent itself": right} {
		t.Run(name, func(t *testing.T) {
			f.opts.StateFile = filepath.Join(t.TempDir(), "machines.json")
			before := len(f.ran())
			f.write(slashed(layout.Agent(f.agent.Hash)), planted)

			bootID(t, f.connect())

			commands := f.ran()[before:]
			if !slices.Equal(commands, []string{"install", "agent"}) {
				t.Errorf("ran\n%s", strings.Join(commands, "\n"))
			}
		})
	}
}

func TestAgentOfAnotherHashIsReplaced(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.connect().Close()
	f.write(slashed(layout.Agent(f.agent.Hash)), "MZ another agent, which runs")
	bootID(t, f.connect())
}
