package tree

// shimOf returns the shim if it lives.
func shimOf(id Identity) []Process {
	p, err := Read(id.PID)
	if err != nil || p.Start != id.Start || p.Dead() {
		return nil
	}
	return []Process{p}
}

// Identify fills in what names the shim with number id.PID for good.
func Identify(id *Identity) error {
	shim, err := Read(id.PID)
	if err != nil {
		return err
	}
	id.Start = shim.Start
	id.Boot, err = BootID()
	return err
}

// IdentifyLeader does the same for the leader, if it is known, and makes sure
// that the shim still lives.
func IdentifyLeader(id *Identity) error {
	if len(shimOf(*id)) == 0 {
		return ErrShimLost
	}
	if id.Leader == 0 {
		return nil
	}

	leader, err := Read(id.Leader)
	if err != nil {
		return err
	}
	id.LeaderStart = leader.Start
	return nil
}
