package models_test

import (
	"testing"

	"weir/models"
)

func TestMoney(t *testing.T) {
	for text, micros := range map[string]int64{"0": 0, "0.012": 12_000, "12": 12_000_000, "1.5": 1_500_000, " 0.000001 ": 1, "3.": 3_000_000} {
		if got, err := models.ParseMicros(text); err != nil || got != micros {
			t.Errorf("%q is %d, %v, not %d", text, got, err, micros)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1e3", "0.0000001", "1,5", "1.-5", "1234567890123", "x"} {
		if got, err := models.ParseMicros(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	for micros, text := range map[int64]string{0: "0.00 EUR", 1: "0.000001 EUR", 12_000: "0.012 EUR", 1_500_000: "1.50 EUR", 123_456_789: "123.456789 EUR"} {
		if got := models.Money(micros, "EUR"); got != text {
			t.Errorf("%d is %q, not %q", micros, got, text)
		}
	}
	for ms, text := range map[int64]string{0: "0.00", 3_600_000: "1.00", 17_999: "0.00", 18_000: "0.01", 5_400_000_000: "1500.00"} {
		if got := models.CoreHours(ms); got != text {
			t.Errorf("%d ms are %q hours, not %q", ms, got, text)
		}
	}
}

// A cost is exact however it is added up, and beyond 64 bits before it is divided.
func TestCostIsExact(t *testing.T) {
	var parts, whole models.Cost
	for range 3 {
		parts.Add(1, 1_200_000) // a third of a millionth each
	}
	whole.Add(3, 1_200_000)
	if parts.Micros() != 1 || whole.Micros() != 1 {
		t.Errorf("%d and %d", parts.Micros(), whole.Micros())
	}
	var most models.Cost
	most.Add(1_000_000*366*24*3_600_000, models.MaxPriceMicros)
	if got, want := most.Micros(), int64(1_000_000*366*24)*models.MaxPriceMicros; got != want {
		t.Errorf("%d, not %d", got, want)
	}
}
