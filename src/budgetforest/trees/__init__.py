"""Flat trees and forests, ours or those of another library, and ways to look at them."""
