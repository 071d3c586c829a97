// Package sandbox provides a stand-in for a Windows node, without Windows.
//
// A sandbox is a background process of swdt itself: an SSH and SFTP server on
// loopback that behaves as Win32-OpenSSH does, in front of one of two machines
// (see drivers):
//
//   - simulated: an in-memory Windows (package platform/simulated) that runs the
//     real agent's code. No dependencies, every OS.
//   - wine: a Wine prefix in which the real swdt-agent.exe, a real Service
//     Control Manager and real services run. Linux.
//
// Up, Status and Down manage such processes, each in a state folder of its own. A process holds a
// lock on its folder until it ends. So swdt reliably distinguishes a running sandbox from the state
// that a crash left behind, and never signals an unrelated process that got the same process ID.
//
// Serve is the same server in the caller's process, for tests.
package sandbox
