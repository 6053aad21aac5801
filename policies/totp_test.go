package policies

import (
	"encoding/base32"
	"strings"
	"testing"
	"time"
)

// The vectors of RFC 6238, appendix B, for SHA-1, with the last six of their eight digits.
func TestTOTPAsInTheRFC(t *testing.T) {
	secret := base32.StdEncoding.EncodeToString([]byte("12345678901234567890"))
	for seconds, code := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924",
		2000000000: "279037", 20000000000: "353130"} {
		if step, ok := totpStep(secret, code, time.Unix(seconds, 0)); !ok || step != seconds/30 {
			t.Errorf("%s at %d: step %d, %t", code, seconds, step, ok)
		}
		// The codes of the step before and of the one after are valid, too.
		for _, late := range []int64{-30, 30} {
			if step, ok := totpStep(secret, code, time.Unix(seconds+late, 0)); !ok || step != seconds/30 {
				t.Errorf("%s %d s later: step %d, %t", code, late, step, ok)
			}
		}
		for _, late := range []int64{-60, 60} {
			if _, ok := totpStep(secret, code, time.Unix(seconds+late, 0)); ok && seconds+late >= 0 {
				t.Errorf("%s is valid %d s later", code, late)
			}
		}
	}
	for _, wrong := range []string{"", "287083", "28708", "2870820", "２８７０８２", "abcdef"} {
		if _, ok := totpStep(secret, wrong, time.Unix(59, 0)); ok {
			t.Errorf("%q is valid", wrong)
		}
	}
}

func TestCodes(t *testing.T) {
	codes, hashes := newRecoveryCodes()
	if len(codes) != 10 || len(hashes) != 10 {
		t.Fatalf("%d codes, %d hashes", len(codes), len(hashes))
	}
	for i, c := range codes {
		if HashSecret(plainCode(" "+strings.ToUpper(c)+" ")) != hashes[i] || isTOTP(plainCode(c)) || len(c) != 19 {
			t.Errorf("code %q", c)
		}
	}
	for code, totp := range map[string]bool{"123 456": true, "000000": true, "-12345": false, "12345": false, "1234567": false, "+12345": false} {
		if isTOTP(plainCode(code)) != totp {
			t.Errorf("%q is a code of an app: %t", code, !totp)
		}
	}
	if secret := newTOTPSecret(); len(secret) != 32 || secret == newTOTPSecret() {
		t.Errorf("secret %q", secret)
	}
	if uri := totpURI("a+b@example.org", "ABC"); uri != "otpauth://totp/Weir:a+b@example.org?secret=ABC&issuer=Weir" {
		t.Error(uri)
	}
}

func TestKey(t *testing.T) {
	key, err := NewKey([]byte("shared"), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewKey([]byte("shared"), "b")
	if err != nil {
		t.Fatal(err)
	}
	stored := key.Encrypt("secret")
	if got, err := key.Decrypt(stored); err != nil || got != "secret" || strings.Contains(stored, "secret") {
		t.Errorf("%q, %v", got, err)
	}
	for _, wrong := range []string{"", "x", stored[:len(stored)-4], strings.ToUpper(stored)} {
		if got, err := key.Decrypt(wrong); err == nil {
			t.Errorf("%q is decrypted: %q", wrong, got)
		}
	}
	if got, err := other.Decrypt(stored); err == nil {
		t.Errorf("the key of another purpose decrypts %q", got)
	}
}
