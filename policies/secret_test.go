package policies

import (
	"fmt"
	"strings"
	"testing"
)

// An internal test: the functions are not exported.

func TestPasswordHash(t *testing.T) {
	hash := hashPassword("correct horse")
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(hash, "horse") {
		t.Errorf("hash %s", hash)
	}
	if hash == hashPassword("correct horse") {
		t.Error("two hashes have one salt")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "Correct horse": false, "": false, "correct\x00horse": false} {
		if got := checkPassword(password, hash); got != want {
			t.Errorf("%q: %t", password, got)
		}
	}
}

func TestPasswordHashesThatAreNone(t *testing.T) {
	good := strings.Split(hashPassword("x"), "$")
	with := func(i int, part string) string {
		parts := append([]string{}, good...)
		parts[i] = part
		return strings.Join(parts, "$")
	}
	for _, hash := range []string{"", "x", "$$$$$", with(1, "argon2i"), with(1, "bcrypt"), with(2, "v=16"), with(2, ""), with(3, "m=1,t=0,p=1"),
		with(3, "m=1,t=1,p=0"), with(3, "m=-1,t=1,p=1"), with(3, "m=1,t=1,p=256"), with(4, "!"), with(5, "!"), with(5, ""), with(5, "AAAA"), strings.Join(good, "$") + "$"} {
		if checkPassword("x", hash) {
			t.Errorf("%q lets in", hash)
		}
	}
}

func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		s := NewSecret()
		if len(s) != 43 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("secret %q", s)
		}
		seen[s] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 secrets differ", len(seen))
	}
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	if got := HashSecret("abc"); got != abc {
		t.Errorf("SHA-256 of abc is %s", got)
	}
}

func FuzzCheckPassword(f *testing.F) {
	f.Add("x", fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s", "AAAAAAAAAAA", "AAAA"))
	f.Fuzz(func(t *testing.T, password, hash string) {
		if len(hash) < 200 && !strings.ContainsAny(hash, "123456789") {
			checkPassword(password, hash) // must not panic
		}
	})
}
