package platform

// Roots are the root certificates of the machine's store "ROOT" (Trusted Root Certification Authorities), by which its
// programs verify servers. Certificates are in DER.
type Roots interface {
	List() ([][]byte, error)
	// Add adds a certificate; no error if the store has it already.
	Add(certificate []byte) error
	// Remove removes a certificate. If the store does not have it, the error is fault.ErrNotExist.
	Remove(certificate []byte) error
}
