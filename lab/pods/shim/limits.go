package main

import "time"

// resources has the needed fields of the OCI runtime's specification of a container for Windows.
type resources struct {
	CPU struct {
		Maximum uint16 `json:"maximum"` // in ten-thousandths of the machine
	} `json:"cpu"`
	Memory struct {
		Limit uint64 `json:"limit"` // in bytes
	} `json:"memory"`
}

// limits are the processors and the memory that a container may use. 0: there is no limit.
type limits struct {
	cores  float64
	memory uint64 // in bytes
}

// limits returns the limits on a machine with this number of processors.
func (r resources) limits(processors int) limits {
	const whole = 10000
	return limits{float64(r.CPU.Maximum) / whole * float64(processors), r.Memory.Limit}
}

// burst bounds the CPU time that a container can save up, in units of its limit.
const burst = 100 * time.Millisecond

// budget is the CPU time that a container may still use. It decides when its processes must pause.
type budget struct {
	cores float64
	left  time.Duration
}

// spend records that the container used CPU time while some time passed, and reports whether it must pause.
func (b *budget) spend(used, passed time.Duration) (pause bool) {
	b.left = min(b.left+b.share(passed)-used, b.share(burst))
	return b.left < 0
}

func (b *budget) share(of time.Duration) time.Duration { return time.Duration(b.cores * float64(of)) }
