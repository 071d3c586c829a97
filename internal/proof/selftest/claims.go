package selftest

// Claims returns all claims, in the order in which they are tried: those that change nothing first.
func Claims() []Claim {
	program := []artifact{ourService(), ourFolder()}
	return []Claim{
		{ID: "facts", Title: "Facts of the machine", Grade: Reads, try: tryFacts,
			Proves: "Build, boot id, uptime, processors and memory are known, and the agent is an administrator."},
		{ID: "account", Title: "Name and account", Grade: Reads, try: tryAccount,
			Proves: "Windows' own programs run, and agree with the facts."},
		{ID: "agent", Title: "The agent and its access list", Grade: Reads, try: tryAgent,
			Proves: "The agent has the right hash, and no ordinary account can change its folder."},
		{ID: "shell", Title: "Default shell", Grade: Reads, try: tryShell,
			Proves: "The shell that OpenSSH starts is known."},
		{ID: "services", Title: "List of services", Grade: Reads, try: tryServices,
			Proves: "Services have their states and processes."},
		{ID: "events", Title: "Event log", Grade: Reads, try: tryEvents,
			Proves: "The System log is read in its order, with times by the node's clock."},
		{ID: "listeners", Title: "Listening ports", Grade: Reads, try: tryListeners,
			Proves: "Ports on which processes listen are listed."},
		{ID: "hns", Title: "Host Network Service", Grade: Reads, try: tryHNS,
			Proves: "Networks and their endpoints are read, and belong together."},
		{ID: "hcs", Title: "Host Compute Service", Grade: Reads, try: tryHCS,
			Proves: "Compute systems are read."},
		{ID: "counters", Title: "Counters of the packet monitor", Grade: Reads, try: tryCounters,
			Proves: "pktmon prints its counters as JSON."},
		{ID: "features", Title: "Windows features", Grade: Reads, try: tryFeatures,
			Proves: "The states of Containers and Hyper-V are known."},
		{ID: "runtime", Title: "Container runtime", Grade: Reads, try: tryRuntime,
			Proves: "The container runtime answers on its pipe."},

		{ID: "files", Title: "Files", Grade: Makes, try: tryFiles, makes: []artifact{ourFolder()},
			Proves: "Files are written, read back unchanged, renamed and removed."},
		{ID: "names", Title: "Long and unusual names of files", Grade: Makes, try: tryNames, makes: []artifact{ourFolder()},
			Proves: "Unicode, spaces, and paths of more than 260 characters work."},
		{ID: "resume", Title: "Interrupted transfers", Grade: Makes, try: tryResume, makes: []artifact{ourFolder()},
			Proves: "A half-sent file is continued, and a file with a wrong hash is refused."},
		{ID: "programs", Title: "Programs", Grade: Makes, try: tryPrograms, makes: program,
			Proves: "Arguments, streams and the exit code of a program arrive unchanged."},
		{ID: "processes", Title: "List of processes", Grade: Makes, try: tryProcesses, makes: program,
			Proves: "A process is listed with its parent while it runs, and not after its end."},
		{ID: "running", Title: "Files of running programs", Grade: Makes, try: tryRunning, makes: program,
			Proves: "A running program can be renamed, and not removed."},
		{ID: "held", Title: "Files that a program holds", Grade: Makes, try: tryHeld, makes: program,
			Proves: "A file that another program does not share is renamed once that program has closed it."},
		{ID: "lost", Title: "Lost connection", Grade: Makes, try: tryLost, makes: program,
			Proves: "After its agent is killed, swdt connects again."},
		{ID: "registry", Title: "Registry", Grade: Makes, try: tryRegistry, makes: []artifact{ourKey()},
			Proves: "Values of all usual types are written, read back and removed."},
		{ID: "environment", Title: "Environment of the machine", Grade: Makes, try: tryEnvironment,
			makes: []artifact{ourVariable()}, Proves: "A variable is set once, and removed."},
		{ID: "firewall", Title: "Firewall rules", Grade: Makes, try: tryFirewall, makes: []artifact{ourRule()},
			Proves: "A disabled rule is added, listed and removed."},
		{ID: "service", Title: "A service", Grade: Makes, try: tryService, makes: program,
			Proves: "A service is made, started and stopped, and its process is gone after the stop."},
		{ID: "kill", Title: "A killed service", Grade: Makes, try: tryKill, makes: program,
			Proves: "The end of a killed service is noticed, and it starts again."},
		{ID: "service-log", Title: "Log of a service", Grade: Makes, try: tryServiceLog, makes: program,
			Proves: "The log that a service's command line names is found and read to its end."},
		{ID: "service-event", Title: "Event of a new service", Grade: Makes, try: tryServiceEvent, makes: program,
			Proves: "Windows logs the new service, and swdt finds the event."},
		{ID: "push", Title: "Push", Grade: Makes, try: tryPush, makes: program,
			Proves: "The program of a running service is replaced; a second push finds nothing to do."},
		{ID: "delta", Title: "Push of a difference", Grade: Makes, try: tryDelta, makes: program,
			Proves: "The node makes the new program from its old one and a patch."},
		{ID: "rollback", Title: "Rollback", Grade: Makes, try: tryRollback, makes: program,
			Proves: "The previous program comes back, and a second rollback undoes the first."},
		{ID: "broken", Title: "Push of a broken program", Grade: Makes, try: tryBroken, makes: program,
			Proves: "If the new program ends at once, the old one runs again."},
		{ID: "cut", Title: "Push over a cut connection", Grade: Makes, try: tryCut, makes: program,
			Proves: "A push whose agent is killed ends well."},

		{ID: "desktop", Title: "Remote Desktop", Grade: Settings, try: tryDesktop,
			makes: []artifact{remoteDesktop(), ourService(), ourFolder()}, Proves: "Remote Desktop is allowed or denied for a moment, and put back."},
		{ID: "guardian", Title: "Restart in the middle of a push", Grade: Reboots, try: tryGuardian, makes: program,
			Proves: "After the restart the push is finished or undone, and the service runs."},
	}
}

// sweepOrder returns the claims in an order in which a sweep puts settings back before it removes the
// folder in which they are recorded, and removes the service before the folder with its program.
func sweepOrder(claims []Claim) []Claim {
	ordered := make([]Claim, 0, len(claims))
	for _, settings := range []bool{true, false} {
		for _, c := range claims {
			if (c.Grade == Settings) == settings {
				ordered = append(ordered, c)
			}
		}
	}
	return ordered
}
