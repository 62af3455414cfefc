"""Renders Reason trees and Solutions: text, JSON."""
