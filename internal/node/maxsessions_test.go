package node_test

import "testing"

// An sshd with MaxSessions 1 does not allow SFTP and a command at the same time, nor a second
// agent.
func TestASessionAtATimeIsEnough(t *testing.T) {
	for _, most := range []int{1, 2} {
		f := newFakeNode(t, faults{maxSessions: most})
		for _, contact := range []string{"first", "second"} {
			c := f.connect()
			if bootID(t, c) == "" {
				t.Errorf("MaxSessions %d: no answer at the %s contact", most, contact)
			}
			if _, err := c.Bulk(t.Context()); err != nil {
				t.Errorf("MaxSessions %d: bulk: %v", most, err)
			}
			if err := c.Close(); err != nil {
				t.Logf("close: %v", err) // the machine may have closed it first
			}
		}
	}
}
