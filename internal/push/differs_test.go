package push

import "testing"

// The time that passes is no other state of a node; each other field is.
func TestNodeStatusDiffers(t *testing.T) {
	status := func() NodeStatus {
		s := newNodeStatus("w1", "a")
		s.UptimeSeconds = 10
		s.Components = []ComponentStatus{{Name: "kubelet", PID: 4, UptimeSeconds: 9, Drift: DriftNone}}
		return s
	}
	later := status()
	later.UptimeSeconds, later.Components[0].UptimeSeconds = 12, 11
	if status().Differs(later) {
		t.Error("only time has passed, and the status differs")
	}
	for what, change := range map[string]func(*NodeStatus){
		"process": func(s *NodeStatus) { s.Components[0].PID = 5 },
		"drift":   func(s *NodeStatus) { s.Components[0].Drift = DriftRestart },
		"journal": func(s *NodeStatus) { s.PendingJournal = true },
		"reboot":  func(s *NodeStatus) { s.PendingReboot = append(s.PendingReboot, "update") },
	} {
		changed := status()
		change(&changed)
		if !status().Differs(changed) {
			t.Errorf("another %s, and the status does not differ", what)
		}
	}
	before := status()
	before.Differs(later)
	if before.UptimeSeconds != 10 || before.Components[0].UptimeSeconds != 9 {
		t.Errorf("Differs changed the status: %+v", before)
	}
}
